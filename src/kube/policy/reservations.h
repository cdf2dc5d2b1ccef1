/*
 * The address and the node ports of a service, which no other service may have. Each is reserved by
 * a key of its own that is written in the transaction of the service: an address by an IPAddress
 * object, as in Kubernetes, a port by a key of ours. A number that is in use makes the transaction
 * fail; another one is tried, or the client gets an error if it wanted that one.
 *
 *     kube_reservations_make ─► kube_reservations_companions ─► write ─┬─► done
 *                               ▲                          │ a key exists
 *                               │                          ▼
 *                      kube_reservations_next ◄── kube_reservations_look, kube_reservations_forget
 *
 * A key may outlive its service, which was deleted by other means; the caller reads the owner and
 * calls kube_reservations_forget, and the key is replaced.
 */
#ifndef VIGIL_KUBE_POLICY_RESERVATIONS_H
#define VIGIL_KUBE_POLICY_RESERVATIONS_H

#include "kube/policy/range.h"
#include "kube/types/field_errors.h"
#include "kube/types/object/meta.h"
#include "kube/types/storage.h"

/* Where addresses and ports come from; shared by all threads and never changed. */
struct kube_service_ranges {
    struct kube_range addresses;
    uint16_t port_first, port_last; /* range of node ports */
};

struct kube_reservation {
    struct slice key;
    bool is_port;
    bool is_given;     /* by the client */
    size_t port_index; /* in spec.ports */
    uint64_t number;   /* in its range */
    uint64_t tries;    /* numbers tried so far */
    int64_t expected;  /* revision of a key without an owner, which is replaced; 0: none */
    int64_t taken;     /* revision of the key that exists; 0: it does not */
    struct slice owner_namespace, owner_name; /* service that has it */
};

/* At a time: an address and node ports. */
enum { KUBE_RESERVATIONS_MAX = 64 };

struct kube_reservations {
    struct arena *arena;
    const struct kube_service_ranges *ranges;
    struct random *random;
    struct json_node *service;
    struct slice namespace, name; /* service that needs it */
    struct kube_reservation items[KUBE_RESERVATIONS_MAX];
    size_t count;
    struct slice released[KUBE_COMPANIONS_MAX]; /* keys of what the service had and gives up */
    size_t released_count;
    int64_t now_s;
};

/* Whether the kind is that of services. */
bool kube_reservations_concern(const struct kube_kind *kind);

/*
 * Sets the address and the ports that a new service (old NULL), or the new version of one, does not
 * have and needs. The name is set by kube_reservations_companions. False: errors were added, or
 * there is no memory (arena_ran_out).
 */
MUST_CHECK
bool kube_reservations_make(struct kube_reservations *reservations,
                            const struct kube_service_ranges *ranges, const struct kube_meta *meta,
                            struct json_node *service, const struct json_node *old,
                            struct kube_field_errors *errors);
/* What a service that is deleted gives up. */
void kube_reservations_release(struct kube_reservations *reservations, struct arena *arena,
                               const struct json_node *service);

/* *ret_companions NULL: there is nothing to write. ST_NOMEM. */
MUST_CHECK
enum status kube_reservations_companions(struct kube_reservations *reservations,
                                         struct slice namespace, struct slice name,
                                         struct kube_companions **ret_companions);

/* After a write that was refused, before it is closed. True: a reservation is in use. ST_NOMEM is
 * left in the arena. */
bool kube_reservations_look(struct kube_reservations *reservations, const struct kube_write *write);
/* The first reservation that is in use and whose owner was not read; NULL: none. */
struct kube_reservation *kube_reservations_taken(struct kube_reservations *reservations);
/* Whether this service, the owner of a reservation, really has it. */
bool kube_reservations_has(const struct kube_reservations *reservations,
                           const struct kube_reservation *reservation,
                           const struct json_node *service);
/* The owner does not exist or does not have it: it is replaced. */
void kube_reservations_forget(struct kube_reservation *reservation);
/* Tries another number. False: errors were added. */
MUST_CHECK
bool kube_reservations_next(struct kube_reservations *reservations,
                            struct kube_reservation *reservation, struct kube_field_errors *errors);

#endif
