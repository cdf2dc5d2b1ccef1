/*
 * Leader election: of several candidates, at most one leads at a time, as long as their clocks run
 * at about the same speed. They agree by a Lease object (coordination.k8s.io/v1), so candidates
 * in C and in Go may take part in the same election.
 *
 *     waiting ──(acquired)──► leading ──(lost or not renewed)──► waiting
 *        └───────────────────────┴──(ended)──► ended
 *
 * Times and rules are those of client-go's leaderelection: a candidate takes a lease that was not
 * renewed for lease_duration_ms, as it has observed it with its own clock; the leader renews it
 * every retry_period_ms and stops leading if that fails for renew_deadline_ms.
 *
 * In contrast to client-go, a candidate that stops leading becomes a candidate again; a leader also
 * stops as soon as it sees another holder, or when the lease that it wrote may have run out because
 * answers were slow.
 */
#ifndef VIGIL_KUBE_LEADER_H
#define VIGIL_KUBE_LEADER_H

#include <vigil/kube/client.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_kube_candidate vigil_kube_candidate;

/* What the function of a candidate learns. */
enum vigil_kube_leader_news {
    VIGIL_KUBE_LEADING,     /* it leads from now on */
    VIGIL_KUBE_NOT_LEADING, /* it has stopped leading: whatever it does as leader must end at once
                             */
    VIGIL_KUBE_NEW_LEADER   /* the leader is another one than before; it may be this candidate */
};

/* leader is the identity of the candidate that leads; "" if none does. */
typedef void (*vigil_kube_leader_fn)(vigil_kube_candidate *candidate, int news, const char *leader,
                                     void *user);

/* Set all fields with vigil_kube_leader_options_init. */
typedef struct vigil_kube_leader_options {
    size_t size;
    /* Namespace and name of the Lease, which is created if necessary. The name must be given; the
     * default namespace is that of the client. */
    const char *name_space, *name;
    const char *identity;      /* unique among the candidates; default: host name and a number */
    int64_t lease_duration_ms; /* default 15000 */
    int64_t renew_deadline_ms; /* default 10000; less than lease_duration_ms */
    int64_t retry_period_ms;   /* default 2000; less than renew_deadline_ms / 1.2 */
    int keep_when_freed;       /* default 0: a leader that is freed releases the lease */
} vigil_kube_leader_options;

/* Sets the size and the defaults. */
VIGIL_API void vigil_kube_leader_options_init(vigil_kube_leader_options *options);

/* Stands for election. fn is called on the thread that makes callbacks. Returns a vigil_code:
 * VIGIL_ERROR_ARGUMENT, VIGIL_ERROR_MEMORY. */
VIGIL_API int vigil_kube_candidate_new(vigil_kube *kube, const vigil_kube_leader_options *options,
                                       vigil_kube_leader_fn fn, void *user,
                                       vigil_kube_candidate **ret_candidate);
/* Stops; fn is not called any more. A leader releases the lease, so that another candidate need not
 * wait for its end; this waits for the answer, at most two seconds, unless it is called inside a
 * callback. In the program's loop it does what vigil_kube_process does meanwhile. Accepts NULL. */
VIGIL_API void vigil_kube_candidate_free(vigil_kube_candidate *candidate);
/* Returns 1 while it leads and the lease has not run out. */
VIGIL_API int vigil_kube_candidate_is_leading(const vigil_kube_candidate *candidate);

#ifdef __cplusplus
}
#endif

#endif
