/*
 * Users and roles of the v2 API: a thing apart from those of v3, as in etcd, where they lie under
 * /2 of its v2 store. Here they are one document, the value of one key of v3, so that a change is
 * one transaction and a question one read.
 *
 *     V2_POLICY_KEY ──► {"enabled":…,"users":[{"user":…,"hash":…,"roles":…}…],"roles":[…]}
 *
 * Who can read or write that key through v3 can read or change all of it, as with the nodes.
 * Pure functions over bytes and an arena; what they return lies there or refers to what was read.
 */
#ifndef VIGIL_ETCD_V2_POLICY_H
#define VIGIL_ETCD_V2_POLICY_H

#include "base/buf.h"
#include "base/memory/arena.h"
#include "codec/json/tree.h"
#include "codec/json/writer.h"

#define V2_POLICY_KEY "_vigil/v2/security"
#define V2_ROOT_ROLE "root"
#define V2_GUEST_ROLE "guest"

enum {
    V2_POLICY_BYTES_MAX = 128 * 1024, /* as stored */
    V2_POLICY_NAME_BYTES_MAX = 500,   /* of a user, a role or a pattern */
    V2_POLICY_NAMES_MAX = 256,        /* roles of a user; patterns of a role to read, to write */
};

/* A list that may be null: etcd tells it from an empty one, and so do its clients. */
struct v2_names {
    struct slice *list;
    size_t count;
    bool given;
};

struct v2_rights {
    struct v2_names read, write; /* patterns: a key, or its beginning and '*' */
};

struct v2_role {
    struct slice name;
    struct v2_rights rights;
};

struct v2_user {
    struct slice name, hash; /* bcrypt */
    struct v2_names roles;
};

struct v2_policy {
    bool enabled;
    struct v2_user *users; /* sorted by name */
    size_t user_count;
    struct v2_role *roles; /* sorted by name; the role root is none of them */
    size_t role_count;
};

/* -- The document -- */

/* Empty: nobody has set anything up. ST_MALFORMED, ST_LIMIT, ST_NOMEM. */
MUST_CHECK
enum status v2_policy_read(struct arena *arena, struct slice text, struct v2_policy *ret_policy);
/* ST_LIMIT: it is longer than V2_POLICY_BYTES_MAX. */
MUST_CHECK
enum status v2_policy_write(const struct v2_policy *policy, struct buf *to);

/* NULL: there is none. */
struct v2_user *v2_policy_user(const struct v2_policy *policy, struct slice name);
/* Root's is always there. */
const struct v2_role *v2_policy_role(const struct v2_policy *policy, struct slice name);

/* In their places; none of that name may be there. ST_NOMEM. */
MUST_CHECK
enum status v2_policy_add_user(struct arena *arena, struct v2_policy *policy,
                               const struct v2_user *user);
MUST_CHECK
enum status v2_policy_add_role(struct arena *arena, struct v2_policy *policy,
                               const struct v2_role *role);
/* False: there is none. */
bool v2_policy_remove_user(struct v2_policy *policy, struct slice name);
bool v2_policy_remove_role(struct v2_policy *policy, struct slice name);

/* The role root, which the user root always has, is added to his. */
MUST_CHECK
enum status v2_user_complete(struct arena *arena, struct v2_user *user);

/* -- Questions -- */

bool v2_names_hold(const struct v2_names *names, struct slice name);

struct v2_access {
    struct slice path; /* "/a/b" as the request has it */
    bool write;
    bool recursive; /* with all that is below: only patterns with '*' count */
};
bool v2_role_allows(const struct v2_role *role, const struct v2_access *access);
/* Any role of these; those that are not there allow nothing. */
bool v2_policy_allows(const struct v2_policy *policy, const struct v2_names *roles,
                      const struct v2_access *access);

/* -- Sets: sorted, never null -- */

/* names and more of them: ST_INVALID when there is one that was there already, which is *ret_name
 * then. ST_LIMIT: V2_POLICY_NAMES_MAX. */
MUST_CHECK
enum status v2_names_grant(struct arena *arena, const struct v2_names *names,
                           const struct v2_names *more, struct v2_names *ret_names,
                           struct slice *ret_name);
/* names without less of them: ST_INVALID when there is one that is not there. ret_name may be NULL:
 * it is passed over then. */
MUST_CHECK
enum status v2_names_revoke(struct arena *arena, const struct v2_names *names,
                            const struct v2_names *less, struct v2_names *ret_names,
                            struct slice *ret_name);
bool v2_names_equal(const struct v2_names *a, const struct v2_names *b);

/* -- As clients write and see them -- */

/* A text, a list of texts, {"kv":{"read":…,"write":…}}: NULL and null are nothing. ST_MALFORMED: it
 * is something else; ST_LIMIT: a text or a list is too long. */
MUST_CHECK
enum status v2_name_read(struct arena *arena, const struct json_node *node, struct slice *ret_name);
MUST_CHECK
enum status v2_names_read(struct arena *arena, const struct json_node *node,
                          struct v2_names *ret_names);
MUST_CHECK
enum status v2_rights_read(struct arena *arena, const struct json_node *node,
                           struct v2_rights *ret_rights);

void v2_names_json(struct json_writer *w, const struct v2_names *names);
void v2_role_json(struct json_writer *w, const struct v2_role *role);

#endif
