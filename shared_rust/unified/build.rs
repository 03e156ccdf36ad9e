//! Does nothing: it is here so that the build dependencies of all members are selected too.

fn main() {}
