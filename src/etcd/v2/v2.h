/*
 * The v2 API of etcd 3.4 and before, for those who still speak it (--enable-v2): /v2/keys over the
 * nodes of etcd/v2/node.h, and what etcdctl's second version needs besides. A request becomes
 * operations of the engine; nothing is kept but what they need.
 *
 *     GET            one range                                             list.c
 *     GET wait       a cursor over history                                 wait.c
 *     PUT POST DELETE  a look at the node and its parents, then one        write.c
 *                    transaction that fails if any of them has changed
 *
 * Users and roles of its own are in policy.h; guard.c asks them before every request.
 * Of one shard, on its thread. Used by the files of v2 only.
 */
#ifndef VIGIL_ETCD_V2_V2_H
#define VIGIL_ETCD_V2_V2_H

#include "etcd/http/http.h"
#include "etcd/v2/form.h"
#include "etcd/v2/node.h"

struct desk_job;

/* etcd's numbers. */
enum v2_code {
    V2_KEY_NOT_FOUND = 100,
    V2_TEST_FAILED = 101,
    V2_NOT_FILE = 102,
    V2_NOT_DIR = 104,
    V2_NODE_EXIST = 105,
    V2_ROOT_READ_ONLY = 107,
    V2_DIR_NOT_EMPTY = 108,
    V2_UNAUTHORIZED = 110,
    V2_PREV_VALUE_REQUIRED = 201,
    V2_TTL_NAN = 202,
    V2_INDEX_NAN = 203,
    V2_INVALID_FIELD = 209,
    V2_INVALID_FORM = 210,
    V2_REFRESH_VALUE = 211,
    V2_REFRESH_TTL_REQUIRED = 212,
    V2_RAFT_INTERNAL = 300,
    V2_EVENT_INDEX_CLEARED = 401,
};

/*
 * One request of /v2/keys, or of members. First in what its kind needs; freed when its exchange has
 * ended and the engine has answered.
 */
struct v2_call {
    struct http_exchange *exchange;
    struct etcd_face *face;
    struct arena arena;
    struct v2_form form;
    struct v2_key key;
    bool pending;         /* the engine works for it */
    bool ended;           /* its peer is gone, or has all */
    struct desk_job *job; /* a password that is hashed for it; NULL: none */
    void (*fini)(struct v2_call *call);
};

/* For routes: the exchange has ended, and its user is a call or NULL. */
void v2_call_on_end(struct http_exchange *x, void *service);
/* The engine begins, and has answered. False: nobody waits any more, and the call is gone. */
void v2_call_start(struct v2_call *call);
bool v2_call_done(struct v2_call *call);

/* Each takes an exchange whose request was read into the call, and answers it. */
struct v2_call *v2_list_new(void);
void v2_list_run(struct v2_call *call);
struct v2_call *v2_write_new(void);
void v2_write_run(struct v2_call *call);
struct v2_call *v2_wait_new(void);
void v2_wait_run(struct v2_call *call);

/* v2.c: an error of /v2/keys, and with the path of a key as its cause. */
void v2_fail(struct v2_call *call, enum v2_code code, struct slice cause, int64_t index);
void v2_fail_key(struct v2_call *call, enum v2_code code, struct slice key, int64_t index);
void v2_fail_status(struct v2_call *call, enum status status);
/* Fields of every answer about keys. False: the exchange was broken off. */
MUST_CHECK
bool v2_add_index(struct v2_call *call, int64_t index);

/* guard.c: goes on with next if who asks may, by the users and roles of v2 (policy.h); else
 * answers. The call is the exchange's user, and its arena is there. */
enum v2_need {
    V2_NEED_NOTHING,
    V2_NEED_KEY,  /* to do with the call's key what its request says */
    V2_NEED_ROOT, /* the role root */
};
void v2_guard(struct v2_call *call, enum v2_need need, void (*next)(struct v2_call *call));

/* members.c: members, machines and statistics. auth.c: users and roles. */
enum status v2_members_add(struct etcd_face *face);
enum status v2_auth_add(struct etcd_face *face);
/* Of the arena of a call. */
enum { V2_CALL_BYTES_MAX = 16 << 20 };

/* An answer in JSON that is no key's, with the cluster's id. */
void v2_reply_json(struct http_exchange *x, const struct etcd_face *face, unsigned status,
                   struct slice body);
/* {"message": …} */
void v2_reply_message(struct http_exchange *x, const struct etcd_face *face, unsigned status,
                      const char *message);
/* Nobody says who he is here, so while access is controlled nobody may anything. */
bool v2_is_shut(const struct etcd_face *face);
/* Whether the method is one of "GET,PUT": if not it is refused here. */
MUST_CHECK
bool v2_allows(struct http_exchange *x, const struct http_request *request, const char *methods);
/* The same, for what is not about keys and is shut too. */
MUST_CHECK
bool v2_admits(struct http_exchange *x, const struct etcd_face *face,
               const struct http_request *request, const char *methods);

#endif
