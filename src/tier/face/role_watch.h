/*
 * Follows the roles and bindings of the kube-apiserver, so that a right that was taken away ends
 * its watches at once and not at their next review. They are collections of the mirror like others.
 * If the tier's own account may not read them, only the reviews remain.
 *
 *     idle ──start──► opening ──► following ──(a change)──► tier_rights_changed
 *                        ▲            │
 *                        └────────────┘ another generation
 *
 * One for each I/O thread, on that thread.
 */
#ifndef VIGIL_TIER_FACE_ROLE_WATCH_H
#define VIGIL_TIER_FACE_ROLE_WATCH_H

#include "tier/call/api.h"

struct tier_role_watch;

struct tier_role_watch *tier_role_watch_new(struct tier_api *api); /* aborts without memory */
/* At the first read, so that a tier that only passes requests on mirrors nothing. */
void tier_role_watch_start(struct tier_role_watch *watch);
void tier_role_watch_free(struct tier_role_watch *watch); /* accepts NULL */

#endif
