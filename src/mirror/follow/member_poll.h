/*
 * Asks the member at every endpoint for its status now and then, so that an operator sees which of
 * them answers, which one leads and which one only learns, and so that the versions of the cluster
 * are known. Each endpoint has a connection of its own. Nothing else depends on the answers.
 *
 * Owned by the follower; its thread.
 */
#ifndef VIGIL_MIRROR_FOLLOW_MEMBER_POLL_H
#define VIGIL_MIRROR_FOLLOW_MEMBER_POLL_H

struct member_poll;
struct loop;
struct member_table;
struct upstream_options;

/* Begins at once. Everything is borrowed. Aborts without memory. */
struct member_poll *member_poll_new(struct loop *loop, const struct upstream_options *options,
                                    struct member_table *member_table);
void member_poll_free(struct member_poll *poll); /* accepts NULL */

#endif
