/* The owner of an HTTP exchange, which is its user pointer: the search for the sender of the
 * request, then a call, or what has replaced it (a watch, a document that is sent). */
#ifndef VIGIL_KUBE_REQUEST_LIFE_H
#define VIGIL_KUBE_REQUEST_LIFE_H

struct kube_life {
    void (*end)(struct kube_life *life); /* the exchange has ended */
};

#endif
