/*
 * Gives each namespace what kube-controller-manager would give it: the service account default, and
 * the config map kube-root-ca.crt with the certificate of this server. Deleted ones are made again
 * as long as the namespace stays, and a config map that was changed gets its content back. One API
 * of a server does it, as a follower (kube/jobs/follower/follower.h), which stands back while
 * kube-controller-manager holds its lease.
 *
 *     next namespace ─► is it to stay? ─► each object: missing or changed? ─► a request for it ─┐
 *        ▲                │ no                                    ▲                             │
 *        └────────────────┴───────────────────────────────────────┴─────────────────────────────┘
 */
#ifndef VIGIL_KUBE_JOBS_FOLLOWER_FURNISH_H
#define VIGIL_KUBE_JOBS_FOLLOWER_FURNISH_H

struct http_route;
struct kube_api;

/* Does nothing with --kube-namespace-objects=false or --kube-bootstrap=false, and in front of a
 * cluster. The route is that of the API. */
void kube_furnish_start(struct kube_api *api, const struct http_route *route);

#endif
