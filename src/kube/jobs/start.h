/*
 * The objects that a Kubernetes cluster has from the start: the service of the API itself, the
 * range of service addresses, config maps, priority classes, roles with their bindings, and flow
 * schemas. Most are facts observed on a kube-apiserver (tools/kubegen-start.py); the rest depends
 * on the settings. kube/jobs/bootstrap.h writes those that are missing.
 */
#ifndef VIGIL_KUBE_JOBS_START_H
#define VIGIL_KUBE_JOBS_START_H

#include "base/buf.h"
#include "base/memory/arena.h"
#include "base/random.h"
#include "kube/policy/range.h"

/* What the objects say about the server; shared by all threads and never changed. */
struct kube_start_settings {
    struct kube_range services; /* range of --kube-service-cluster-ip-range */
    uint16_t port;              /* on which the API is served */
    bool is_advertised;         /* its address is not a loopback one, so that there are endpoints */
    struct kube_address advertised;
    struct slice client_ca; /* authorities of client certificates, PEM; empty: none */
    struct slice root_ca;   /* the certificate by which clients know this server; empty: none */
};

struct kube_start_object;

/* All of them, in the order in which they are created. Borrows the arena. */
struct kube_start {
    struct arena *arena;
    const struct kube_start_object *own; /* those that depend on the settings */
    size_t own_count;
    bool owned; /* the objects have managedFields; set after kube_start_init */
};

/* Bytes that a start needs in its arena, besides the keys. */
enum { KUBE_START_ARENA_BYTES_MAX = 4 << 20 };

/* ST_NOMEM. */
MUST_CHECK
enum status kube_start_init(struct kube_start *start, const struct kube_start_settings *settings,
                            struct arena *arena, int64_t now_s);
size_t kube_start_count(const struct kube_start *start);
/* The key in the store, allocated in `arena`. ST_NOMEM. */
MUST_CHECK
enum status kube_start_key(const struct kube_start *start, size_t place, struct arena *arena,
                           struct slice *ret_key);
/* The object as it is stored, with a uid and a time of creation. The tree is made in `arena`. */
MUST_CHECK
enum status kube_start_value(const struct kube_start *start, size_t place, struct arena *arena,
                             int64_t now_s, struct random *random, struct buf *to);

#endif
