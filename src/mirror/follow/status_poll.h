/*
 * Asks the member that is followed for its status now and then: the alarms of the cluster, which
 * every member knows, the raft term, and where the raft log is. The answer costs the member nothing
 * but itself.
 *
 * Owned by the follower; its thread.
 */
#ifndef VIGIL_MIRROR_FOLLOW_STATUS_POLL_H
#define VIGIL_MIRROR_FOLLOW_STATUS_POLL_H

#include "base/slice.h"

#include <vigil/client.h>

struct mirror_state;
struct raft_mark;
struct status_poll;

struct status_poll_options {
    vigil_client *client; /* all are borrowed */
    struct mirror_state *state;
    struct raft_mark *raft;
    void (*answered)(void *ctx); /* after each answer; may stop the poll */
    void *ctx;
};

struct status_poll *status_poll_new(
    const struct status_poll_options *options);  /* aborts without memory */
void status_poll_free(struct status_poll *poll); /* accepts NULL */

/* Begins with a question at once. */
void status_poll_start(struct status_poll *poll);
/* No effect if it was not started. */
void status_poll_stop(struct status_poll *poll);

/* The alarms that an error of a status is about, as bits (1 << ENGINE_ALARM_…): it is the text of a
 * message, such as "memberID:1 alarm:NOSPACE". */
unsigned status_poll_alarms_in(struct slice error);

#endif
