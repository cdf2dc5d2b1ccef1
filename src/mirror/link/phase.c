#include "mirror/link/phase.h"

#include <stdio.h>

enum cluster_phase cluster_phase_get(struct cluster_state *state,
                                     const struct cluster_options *options)
{
    if (!atomic_load(&state->synced))
        return atomic_load(&state->reached) ? CLUSTER_LOADING : CLUSTER_UNREACHED;
    if (!atomic_load(&state->connected))
        return CLUSTER_CUT_OFF;
    if (cluster_state_silence(state) > CLUSTER_SILENT_NS)
        return CLUSTER_SILENT;
    bool behind = cluster_state_lag(state) > options->lag_max_revisions;
    return behind ? CLUSTER_BEHIND : CLUSTER_FOLLOWING;
}

enum cluster_phase cluster_phase_explain(struct cluster_state *state,
                                         const struct cluster_options *options,
                                         char ret_text[CLUSTER_PHASE_BYTES])
{
    static const struct {
        const char *text;
        bool has_endpoints;
    } phases[] = {
        [CLUSTER_UNREACHED] = {"no member of the cluster can be followed yet", true},
        [CLUSTER_LOADING] = {"the mirror of the cluster is not complete yet", false},
        [CLUSTER_FOLLOWING] = {"", false},
        [CLUSTER_BEHIND] = {"the mirror is too far behind the cluster", false},
        [CLUSTER_SILENT] = {"the member of the cluster that is followed does not answer", true},
        [CLUSTER_CUT_OFF] = {"no member of the cluster can be followed", true},
    };
    enum cluster_phase phase = cluster_phase_get(state, options);
    bool has_endpoints = phases[phase].has_endpoints && options->upstream.endpoints;
    char follow_failure[FOLLOW_FAILURE_BYTES];
    follow_failure_get(&state->follow_failure, follow_failure);
    bool has_follow_failure = phase != CLUSTER_FOLLOWING && *follow_failure;
    snprintf(ret_text, CLUSTER_PHASE_BYTES, "%s%s%s%s%s%s", phases[phase].text,
             has_endpoints ? " (" : "", has_endpoints ? options->upstream.endpoints : "",
             has_endpoints ? ")" : "", has_follow_failure ? ": " : "",
             has_follow_failure ? follow_failure : "");
    return phase;
}
