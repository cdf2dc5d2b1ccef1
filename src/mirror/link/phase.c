#include "mirror/link/phase.h"

#include <stdio.h>

enum mirror_phase mirror_phase_get(struct mirror_state *state, const struct mirror_options *options)
{
    if (!atomic_load(&state->synced))
        return atomic_load(&state->reached) ? MIRROR_LOADING : MIRROR_UNREACHED;
    if (!atomic_load(&state->connected))
        return MIRROR_CUT_OFF;
    if (mirror_state_silence(state) > MIRROR_SILENT_NS)
        return MIRROR_SILENT;
    bool behind = mirror_state_lag(state) > options->lag_max_revisions;
    return behind ? MIRROR_BEHIND : MIRROR_FOLLOWING;
}

enum mirror_phase mirror_phase_explain(struct mirror_state *state,
                                       const struct mirror_options *options,
                                       char ret_text[MIRROR_PHASE_BYTES])
{
    static const struct {
        const char *text;
        bool has_endpoints;
    } phases[] = {
        [MIRROR_UNREACHED] = {"no member of the cluster can be followed yet", true},
        [MIRROR_LOADING] = {"the mirror of the cluster is not complete yet", false},
        [MIRROR_FOLLOWING] = {"", false},
        [MIRROR_BEHIND] = {"the mirror is too far behind the cluster", false},
        [MIRROR_SILENT] = {"the member of the cluster that is followed does not answer", true},
        [MIRROR_CUT_OFF] = {"no member of the cluster can be followed", true},
    };
    enum mirror_phase phase = mirror_phase_get(state, options);
    bool has_endpoints = phases[phase].has_endpoints && options->upstream.endpoints;
    char follow_failure[FOLLOW_FAILURE_BYTES];
    follow_failure_get(&state->follow_failure, follow_failure);
    bool has_follow_failure = phase != MIRROR_FOLLOWING && *follow_failure;
    snprintf(ret_text, MIRROR_PHASE_BYTES, "%s%s%s%s%s%s", phases[phase].text,
             has_endpoints ? " (" : "", has_endpoints ? options->upstream.endpoints : "",
             has_endpoints ? ")" : "", has_follow_failure ? ": " : "",
             has_follow_failure ? follow_failure : "");
    return phase;
}
