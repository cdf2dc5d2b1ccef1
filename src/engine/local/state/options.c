#include "engine/local/state/options.h"

#include "base/clock.h"

enum {
    SEGMENT_BYTES_FIRST = 1 << 20,
    SEGMENT_BYTES_MAX = 64 << 20,
    CHECKPOINT_BYTES = 64 << 20,
    WATCH_FRAGMENT_BYTES = 2 << 20,
    WATCHERS_PER_STREAM_MAX = 1000 * 1000,
    LEASE_TTL_MIN_S = 2,
    WATCHERS_MAX = 10 * 1000 * 1000,
};

static size_t or_default(size_t value, size_t fallback)
{
    return value ? value : fallback;
}

void engine_local_options_set_defaults(struct engine_local_options *options)
{
    options->fs = options->fs ? options->fs : fs_posix();
    options->segment_bytes_first = or_default(options->segment_bytes_first, SEGMENT_BYTES_FIRST);
    options->segment_bytes_max = or_default(options->segment_bytes_max, SEGMENT_BYTES_MAX);
    options->checkpoint_bytes = or_default(options->checkpoint_bytes, CHECKPOINT_BYTES);
    options->shards_max = (unsigned)or_default(options->shards_max, 1);
    options->watch_fragment_bytes = or_default(options->watch_fragment_bytes, WATCH_FRAGMENT_BYTES);
    options->watchers_per_stream_max =
        (unsigned)or_default(options->watchers_per_stream_max, WATCHERS_PER_STREAM_MAX);
    options->watchers_max = or_default(options->watchers_max, WATCHERS_MAX);
    if (!options->watch_progress_interval_ns)
        options->watch_progress_interval_ns = 600 * NS_PER_S;
    if (!options->check_interval_ns)
        options->check_interval_ns = 3600 * NS_PER_S;
    if (!options->compaction_wait_ns)
        options->compaction_wait_ns = NS_PER_S;
    if (!options->lease_ttl_min_s)
        options->lease_ttl_min_s = LEASE_TTL_MIN_S;
}
