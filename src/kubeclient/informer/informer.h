/*
 * The inside of a vigil_kube_informer: the reflector that decides what to request, the fetcher that
 * makes the requests, and the copy that they keep up to date.
 *
 *     created ──start──► started ──┐
 *        └─────────────────────────┴──► ended
 *
 * Ended: the program has freed its last reference, or the client has ended.
 *
 * Informers of one client that are about the same objects are one: the program's references are
 * counted in `users`, and the list vigil_kube.informers finds it again.
 */
#ifndef VIGIL_KUBECLIENT_INFORMER_INFORMER_H
#define VIGIL_KUBECLIENT_INFORMER_INFORMER_H

#include "client/driver/shared.h"
#include "kubeclient/informer/copy.h"
#include "kubeclient/informer/fetcher.h"
#include "kubeclient/informer/reflector.h"

#include <vigil/kube/informer.h>

enum informer_state { INFORMER_CREATED, INFORMER_STARTED, INFORMER_ENDED };

struct vigil_kube_informer {
    struct driver_shared shared;
    struct vigil_kube *kube; /* the copy holds a reference to its driver */
    struct copy *copy;       /* a reference */

    /* Constant. */
    struct fetcher_scope scope;
    char *texts; /* owned: what the scope refers to */
    bool no_streaming;
    int page_limit;

    /* Protected by the driver's lock. */
    struct list in_kube; /* links vigil_kube.informers while users > 0 */
    unsigned users;

    /* The loop's thread. */
    enum informer_state state;
    struct driver_member member;
    struct reflector reflector;
    struct fetcher fetcher;
    struct timer wait;       /* until the reflector resumes */
    struct deferred publish; /* at the end of a turn in which something has changed */
    bool has_news;           /* an event has arrived in this turn */
    bool has_failed;         /* in this turn */

    /* Protected by the copy's lock. */
    bool started;
    struct vigil_kube_informer_stats stats;
};

/* Asserts every invariant; for tests, on the loop's thread. */
void informer_check(struct vigil_kube_informer *informer);

#endif
