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

enum mirror_phase {
    MIRROR_UNREACHED, /* no member has answered since the start */
    MIRROR_LOADING,   /* the mirror is not complete yet */
    MIRROR_FOLLOWING,
    MIRROR_BEHIND,  /* the mirror is further behind than allowed */
    MIRROR_SILENT,  /* the member that is followed has said nothing for MIRROR_SILENT_NS */
    MIRROR_CUT_OFF, /* the mirror was complete, but cannot be kept so now */
};

enum { MIRROR_PHASE_BYTES = 1024 };
/* The follower asks the member every two seconds whether it is there. */
#define MIRROR_SILENT_NS (INT64_C(5) * 1000 * 1000 * 1000)

enum mirror_phase mirror_phase_get(struct mirror_state *state,
                                   const struct mirror_options *options);
/* Explains the phase in a line, with the endpoints and the last reason if it is because of them. ""
 * while following. */
enum mirror_phase mirror_phase_explain(struct mirror_state *state,
                                       const struct mirror_options *options,
                                       char ret_text[MIRROR_PHASE_BYTES]);

#endif
