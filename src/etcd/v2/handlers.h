/* The handlers of the v2 API, called by routes.c: one for each kind of request. */
#ifndef VIGIL_ETCD_V2_HANDLERS_H
#define VIGIL_ETCD_V2_HANDLERS_H

#include "base/macros.h"
#include "base/status.h"

struct etcd_api;
struct v2_call;

/* For /v2/keys: new makes an empty call of its kind, on the heap. run takes it when its request has
 * been permitted and read, and answers it. */
struct v2_call *v2_list_new(void);
void v2_list_run(struct v2_call *call);
struct v2_call *v2_write_new(void);
void v2_write_run(struct v2_call *call);
struct v2_call *v2_wait_new(void);
void v2_wait_run(struct v2_call *call);

/* Add the routes of members.c (members, machines and statistics) and auth.c (users and roles). */
MUST_CHECK
enum status v2_members_add(struct etcd_api *api);
MUST_CHECK
enum status v2_auth_add(struct etcd_api *api);

#endif
