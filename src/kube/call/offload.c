#include "kube/call/offload.h"

#include "io/loop.h"

enum status kube_offload_send(struct kube_offload *offload, uint64_t peer,
                              const struct account *account, struct kube_offload_job *job)
{
    job->worker.group = peer;
    job->worker.answers = &offload->returned;
    job->worker.share = (uintptr_t)account;
    return worker_submit(offload->worker, &job->worker);
}

static void receive(void *owner, struct mailbox_node *node)
{
    (void)owner;
    struct kube_offload_job *job = CONTAINER_OF(node, struct kube_offload_job, worker.in_mailbox);
    job->back(job);
}

void kube_offload_init(struct kube_offload *offload, struct worker *worker, struct loop *loop)
{
    offload->worker = worker;
    if (worker)
        loop_attach(loop, &offload->returned, receive, offload);
}

void kube_offload_fini(struct kube_offload *offload)
{
    if (!offload->worker)
        return;
    worker_leave(offload->worker, &offload->returned);
    mailbox_detach(&offload->returned);
}
