"""The matrix of settings that a batch of queries runs under, sampled per batch."""

from __future__ import annotations

import random

from harness.model import Frozen

WORKER_COUNTS = (1, 2, 3, 5)
MAX_WORKERS = max(WORKER_COUNTS)

ALWAYS_DISTRIBUTE = {"distributed.file_scan_config_bytes_per_partition": "1"}
"""One byte per partition: tables of a few hundred bytes are split over tasks like large ones."""

DISTRIBUTED_CHOICES: dict[str, tuple[str, ...]] = {
    "distributed.dynamic_task_count": ("false", "false", "true"),
    "distributed.broadcast_joins": ("true", "false"),
    "distributed.partial_reduce": ("false", "true"),
    "distributed.compression": ("none", "lz4", "zstd"),
    "distributed.children_isolator_unions": ("true", "true", "false"),
    "distributed.max_tasks_per_stage": ("0", "0", "0", "2"),
    "distributed.shuffle_batch_size": ("0", "0", "2"),
    "distributed.cardinality_task_count_factor": ("1.0", "1.0", "1.5"),
    "distributed.dynamic_bytes_per_partition": ("1", "16777216"),
}
"""Settings of the distributed planner. A value that stands twice is drawn twice as often."""

SESSION_CHOICES: dict[str, tuple[str, ...]] = {
    "datafusion.execution.target_partitions": ("1", "2", "3", "4", "7"),
    "datafusion.execution.batch_size": ("8192", "8192", "16", "3"),
    "datafusion.optimizer.prefer_hash_join": ("true", "true", "true", "false"),
    "datafusion.optimizer.hash_join_single_partition_threshold": ("1048576", "0"),
    "datafusion.optimizer.hash_join_single_partition_threshold_rows": ("131072", "0"),
    "datafusion.optimizer.repartition_joins": ("true", "true", "false"),
    "datafusion.optimizer.repartition_aggregations": ("true", "true", "true", "false"),
    "datafusion.optimizer.repartition_windows": ("true", "true", "true", "false"),
    "datafusion.optimizer.repartition_file_min_size": ("10485760", "1"),
    "datafusion.optimizer.prefer_existing_sort": ("false", "false", "true"),
    "datafusion.optimizer.prefer_existing_union": ("false", "false", "true"),
    "datafusion.optimizer.enable_round_robin_repartition": ("true", "true", "false"),
    "datafusion.execution.coalesce_batches": ("true", "true", "false"),
    "datafusion.execution.collect_statistics": ("true", "true", "false"),
    "datafusion.execution.parquet.pushdown_filters": ("false", "true"),
    "datafusion.execution.parquet.schema_force_view_types": ("true", "true", "false"),
    "datafusion.execution.time_zone": ("+00:00", "+00:00", "+08:00", "America/New_York"),
    "datafusion.execution.split_file_groups_by_statistics": ("false", "false", "true"),
    "datafusion.execution.keep_partition_by_columns": ("false", "false", "true"),
    "datafusion.optimizer.preserve_file_partitions": ("0", "0", "1"),
    "datafusion.optimizer.enable_window_topn": ("false", "true"),
    "datafusion.optimizer.enable_piecewise_merge_join": ("false", "false", "true"),
    "datafusion.optimizer.enable_dynamic_filter_pushdown": ("true", "true", "false"),
    "datafusion.optimizer.enable_unions_to_filter": ("false", "false", "true"),
    "datafusion.optimizer.repartition_sorts": ("true", "true", "false"),
    "datafusion.optimizer.repartition_file_scans": ("true", "true", "false"),
    "datafusion.optimizer.subset_repartition_threshold": ("4", "1"),
    "datafusion.execution.skip_partial_aggregation_probe_rows_threshold": ("100000", "100000", "1"),
}
"""Settings that the single-node session gets too: they change plans, and some of them answers."""


class Options(Frozen):
    """What one batch runs under."""

    workers: int
    session: dict[str, str]
    distributed: dict[str, str]

    def config(self, *, distributed: bool) -> dict[str, str]:
        """Session options of an arm; a single-node one does not know the distributed ones."""
        return {**self.session, **(self.distributed if distributed else {})}


def sample_options(rng: random.Random) -> Options:
    """Settings of one batch."""
    return Options(
        workers=rng.choice(WORKER_COUNTS),
        session={"datafusion.catalog.information_schema": "true"}
        | {key: rng.choice(values) for key, values in SESSION_CHOICES.items()},
        distributed=ALWAYS_DISTRIBUTE | {key: rng.choice(values) for key, values in DISTRIBUTED_CHOICES.items()},
    )
