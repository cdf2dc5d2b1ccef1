#include "cmd/serve/options/options_private.h"

static const struct option storage[] = {
    FLAG_INT("quota-backend-bytes", serve_options, quota_backend_bytes, "0",
             "The database size above which puts are refused and an alarm is raised; 0: 2 GiB; "
             "negative: no limit."),
    FLAG_SIZE("segment-bytes", serve_options, segment_bytes, "67108864",
              "The size of one log file. Files are created and filled with zeros ahead of use.",
              BETWEEN(4 * MIB, 1024 * MIB)),
    FLAG_SIZE("checkpoint-bytes", serve_options, checkpoint_bytes, "67108864",
              "How much log is written between two checkpoints. A start replays about this much, "
              "and at most about twice as much.",
              BETWEEN(1 * MIB, 65536 * MIB)),
    FLAG_DURATION(
        "corrupt-check-time", serve_options, corrupt_check_time_ns, "0s",
        "How often all stored data is read slowly and compared with its checksums and with "
        "the index; 0: every hour.",
        BETWEEN(0, 10000 * HOUR)),
    FLAG_BOOL("experimental-initial-corrupt-check", serve_options, initial_corrupt_check,
              "Read all stored data before serving, and refuse to start if any is damaged. The "
              "same as --feature-gates=InitialCorruptCheck=true."),
    FLAG_INT("bootstrap-defrag-threshold-megabytes", serve_options,
             bootstrap_defrag_threshold_megabytes, "0",
             "Defragment after the start if that would free at least this many megabytes; 0: "
             "never. Clients are served in the meantime.",
             BETWEEN(0, 1 << 30)),
    FLAG_ALIAS("experimental-bootstrap-defrag-threshold-megabytes",
               "bootstrap-defrag-threshold-megabytes"),
    FLAG_ENUM("auto-compaction-mode", serve_options, auto_compaction_mode, "periodic",
              "The unit of --auto-compaction-retention: time or revisions.", "periodic|revision"),
    FLAG_TEXT("auto-compaction-retention", serve_options, auto_compaction_retention, "0",
              "How much history to keep: hours, a duration such as 5m, or a number of revisions. "
              "0: no automatic compaction."),
};

const struct option_group serve_storage_options = GROUP("Storage", storage);
