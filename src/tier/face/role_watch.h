/*
 * Follows the roles and bindings of the kube-apiserver, so that a right that was taken away ends
 * its watches at once and not at their next review. They are collections of the mirror like others.
 * If the tier's own account may not read them, only the reviews remain.
 *
 *     stopped ──start──► opening ──► following ──(a change)──► tier_rights_changed
 *        ▲                  ▲            │
 *        │                  └────────────┘ another generation
 *        └──stop──(any)
 *
 * One for each I/O thread, on that thread.
 */
#ifndef VIGIL_TIER_FACE_ROLE_WATCH_H
#define VIGIL_TIER_FACE_ROLE_WATCH_H

#include "tier/call/api.h"

struct tier_role_watch;

struct tier_role_watch *tier_role_watch_new(struct tier_api *api); /* aborts without memory */
/* When the first watch of a client runs. It is stopped. */
void tier_role_watch_start(struct tier_role_watch *watch);
/* When no watch runs any more; the mirror drops the collections once they are idle. */
void tier_role_watch_stop(struct tier_role_watch *watch);
void tier_role_watch_free(struct tier_role_watch *watch); /* accepts NULL */

#endif
