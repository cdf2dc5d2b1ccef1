/*
 * Answers in the middle of a long request: leases are renewed although a delete of a million keys
 * is under way. No answer may depend on changes that are not durable. So a call for a lease that
 * the group has granted or revoked, or is revoking, waits for the end of the group, and so do all
 * calls if permissions may have changed. Otherwise a request only changes which keys are attached
 * to a lease, which these answers do not show.
 */
#ifndef VIGIL_ENGINE_LOCAL_WRITER_EARLY_H
#define VIGIL_ENGINE_LOCAL_WRITER_EARLY_H

/* A yield_point.fn, called on the writer's thread; ctx is the struct local_writer. */
void local_writer_answer_early(void *ctx);

#endif
