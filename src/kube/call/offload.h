/*
 * Work that takes too long for an I/O thread: a job runs on the worker (io/worker.h) and comes back
 * through a mailbox to the API that sent it. One kube_offload per API, used on its thread.
 */
#ifndef VIGIL_KUBE_CALL_OFFLOAD_H
#define VIGIL_KUBE_CALL_OFFLOAD_H

#include "io/worker.h"

struct loop;
struct account;

/* Bytes that one request may process in one turn of an I/O thread: about 5 ms of server-side
 * apply. More goes to the worker. */
enum { KUBE_WORK_BYTES_MAX = 16 << 10 };

struct kube_offload {
    struct worker *worker; /* NULL: there is none, and nothing may be sent */
    struct mailbox returned;
};

struct kube_offload_job {
    struct worker_job worker;
    void (*back)(struct kube_offload_job *job); /* on the thread of the API */
};

/* worker may be NULL. */
void kube_offload_init(struct kube_offload *offload, struct worker *worker, struct loop *loop);
void kube_offload_fini(struct kube_offload *offload);

/* The job's run, must_run and back are set. peer: wire_peer_key; 0: a job of the server itself. The
 * worker serves peers in turn, and the accounts of a peer, so that no client and no connection
 * delays the others. Statuses of worker_submit. */
MUST_CHECK
enum status kube_offload_send(struct kube_offload *offload, uint64_t peer,
                              const struct account *account, struct kube_offload_job *job);

#endif
