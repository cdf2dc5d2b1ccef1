#include "cmd/serve/options_private.h"

static const struct option storage[] = {
    {
        .name = "quota-backend-bytes",
        .kind = OPTION_INT,
        .fallback = "0",
        .help = "The database size above which puts are refused and an alarm is raised; 0: 2 GiB; "
                "negative: no limit.",
        FIELD(quota_backend_bytes),
    },
    {
        .name = "segment-bytes",
        .kind = OPTION_SIZE,
        .fallback = "67108864",
        .help = "The size of one log file. Files are created and filled with zeros ahead of use.",
        .min = 4 * MIB,
        .max = 1024 * MIB,
        FIELD(segment_bytes),
    },
    {
        .name = "checkpoint-bytes",
        .kind = OPTION_SIZE,
        .fallback = "67108864",
        .help = "How much log is written between two checkpoints. A start replays about this much, "
                "and at most about twice as much.",
        .min = 1 * MIB,
        .max = 65536 * MIB,
        FIELD(checkpoint_bytes),
    },
    {
        .name = "corrupt-check-time",
        .kind = OPTION_DURATION,
        .fallback = "0s",
        .help = "How often all stored data is read slowly and compared with its checksums and with "
                "the index; 0: every hour.",
        .min = 0,
        .max = 10000 * HOUR,
        FIELD(corrupt_check_time_ns),
    },
    {
        .name = "experimental-initial-corrupt-check",
        .kind = OPTION_BOOL,
        .fallback = "false",
        .help = "Read all stored data before serving, and refuse to start if any is damaged. The "
                "same as --feature-gates=InitialCorruptCheck=true.",
        FIELD(initial_corrupt_check),
    },
    {
        .name = "bootstrap-defrag-threshold-megabytes",
        .kind = OPTION_INT,
        .fallback = "0",
        .help = "Defragment after the start if that would free at least this many megabytes; 0: "
                "never. Clients are served in the meantime.",
        .min = 0,
        .max = 1 << 30,
        FIELD(bootstrap_defrag_threshold_megabytes),
    },
    {
        .name = "experimental-bootstrap-defrag-threshold-megabytes",
        .alias_of = "bootstrap-defrag-threshold-megabytes",
    },
    {
        .name = "auto-compaction-mode",
        .kind = OPTION_ENUM,
        .choices = "periodic|revision",
        .fallback = "periodic",
        .help = "The unit of --auto-compaction-retention: time or revisions.",
        FIELD(auto_compaction_mode),
    },
    {
        .name = "auto-compaction-retention",
        .kind = OPTION_TEXT,
        .fallback = "0",
        .help = "How much history to keep: hours, a duration such as 5m, or a number of revisions. "
                "0: no automatic compaction.",
        FIELD(auto_compaction_retention),
    },
};

const struct option_group serve_storage_options = GROUP("Storage", storage);
