/*
 * What the engine can do at the moment. The phase follows from what the follower has noted in the
 * cluster's state, so there is nothing that could disagree with it.
 *
 *     start ──► unreached ──► loading ──► following ◄──► behind, silent
 *                   │                      ▲  │            │
 *                   └── the mirror is warm ┘  ▼            │
 *                       and still right     cut off ◄──────┘
 *
 *     phase       reads of the mirror, watches    forwarded calls                /readyz
 *     unreached   refused, with the reason        fail until a member answers    503
 *     loading     refused, with the reason        work                           503
 *     following   work                            work                           200
 *     behind      reads are forwarded             work                           503
 *     silent      work                            wait for the member            503
 *     cut off     serializable reads and          fail until a member answers    503
 *                 watches work
 *
 * Every phase serves, and none needs a restart. Only `unreached` and `loading` never come back:
 * a mirror that was complete once stays in use.
 */
#ifndef VIGIL_MIRROR_LINK_PHASE_H
#define VIGIL_MIRROR_LINK_PHASE_H

#include "mirror/link/options.h"
#include "mirror/link/state.h"

enum cluster_phase {
    CLUSTER_UNREACHED, /* no member has answered since the start */
    CLUSTER_LOADING,   /* the mirror is not complete yet */
    CLUSTER_FOLLOWING,
    CLUSTER_BEHIND,  /* the mirror is further behind than allowed */
    CLUSTER_SILENT,  /* the member that is followed has said nothing for CLUSTER_SILENT_NS */
    CLUSTER_CUT_OFF, /* the mirror was complete, but cannot be kept so now */
};

enum { CLUSTER_PHASE_BYTES = 1024 };
/* The follower asks the member every two seconds whether it is there. */
#define CLUSTER_SILENT_NS (INT64_C(5) * 1000 * 1000 * 1000)

enum cluster_phase cluster_phase_get(struct cluster_state *state,
                                     const struct cluster_options *options);
/* Explains the phase in a line, with the endpoints and the last reason if it is because of them. ""
 * while following. */
enum cluster_phase cluster_phase_explain(struct cluster_state *state,
                                         const struct cluster_options *options,
                                         char ret_text[CLUSTER_PHASE_BYTES]);

#endif
