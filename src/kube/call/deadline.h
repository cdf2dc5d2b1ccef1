/*
 * The time of a request: that which its query gives it, at most a minute. What it waits for outside
 * of this server ends with it, and so does the request: with 504, as in Kubernetes. A watch has no
 * such time.
 */
#ifndef VIGIL_KUBE_CALL_DEADLINE_H
#define VIGIL_KUBE_CALL_DEADLINE_H

#include "base/clock.h"
#include "kube/call/call.h"

/* As in Kubernetes. */
#define KUBE_CALL_TIME_NS (60 * NS_PER_S)

/* What the request has left of its time; 0: nothing; CLOCK_NEVER: it has no limit. */
int64_t kube_call_time_left_ns(const struct kube_call *call);
/* The time for what it waits for: a little more, because the loop's clock is behind by up to a
 * turn, so that the request has no time left when the wait ends for lack of it. 0: it has none now.
 */
int64_t kube_call_patience_ns(const struct kube_call *call);
/* The status of a request that has no time left. Returns false. */
bool kube_call_fail_late(const struct kube_call *call, struct kube_status *status);

#endif
