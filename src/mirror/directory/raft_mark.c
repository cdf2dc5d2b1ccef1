#include "mirror/directory/raft_mark.h"

#include "base/clock.h"
#include "io/loop.h"

#include <vigil/maintenance.h>

struct raft_mark raft_mark_of(const vigil_status_response *status, struct loop *loop)
{
    return (struct raft_mark){
        .index = status->raft_index,
        .at_ms = clock_real_ns(loop_clock(loop)) / NS_PER_MS,
    };
}

bool raft_mark_is_same_log(struct raft_mark before, struct raft_mark now)
{
    int64_t elapsed_ms;
    uint64_t possible;
    if (before.index == 0 || now.index < before.index ||
        __builtin_sub_overflow(now.at_ms, before.at_ms, &elapsed_ms) || elapsed_ms < 0)
        return false;
    /* Part of a second counts as a whole one, which no restart is shorter than. */
    uint64_t seconds = (uint64_t)elapsed_ms / 1000 + 1;
    if (__builtin_mul_overflow(seconds, (uint64_t)RAFT_ENTRIES_PER_S_MAX, &possible))
        return false;
    return before.index > possible && now.index - before.index <= possible;
}
