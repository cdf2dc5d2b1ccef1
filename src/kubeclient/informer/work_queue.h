/* The inside of a work queue that its tests use. */
#ifndef VIGIL_KUBECLIENT_INFORMER_WORK_QUEUE_H
#define VIGIL_KUBECLIENT_INFORMER_WORK_QUEUE_H

#include "base/clock.h"

#include <vigil/kube/work_queue.h>

/* vigil_work_queue_new with any clock. With a simulated one, take must not wait. */
int work_queue_new_with(struct clock *clock, const vigil_work_queue_options *options,
                        vigil_work_queue **ret_queue);

/* Asserts every invariant; for tests. */
void work_queue_check(vigil_work_queue *queue);

#endif
