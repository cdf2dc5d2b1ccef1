/*
 * Users and roles of the v2 API. As in etcd, which keeps them under /2 of its v2 store, they are
 * separate from those of v3. Here they are one document, the value of one v3 key, so that a change
 * is one transaction and a check needs one read.
 *
 *     V2_POLICY_KEY ──► {"enabled":…,"users":[{"user":…,"hash":…,"roles":…}…],"roles":[…]}
 *
 * A client of v3 that can read or write this key can read or change all of it, as with the nodes.
 * The functions are pure; what they return is in the arena or refers to their input.
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
    V2_POLICY_NAME_BYTES_MAX =
        500,                   /* limit on the length of a user's or role's name, or of a pattern */
    V2_POLICY_NAMES_MAX = 256, /* roles of a user; patterns of a role to read, to write */
};

/* A list that may be null, which etcd and its clients distinguish from an empty one. */
struct v2_names {
    struct slice *list;
    size_t count;
    bool given;
};

struct v2_rights {
    struct v2_names read, write; /* patterns: a key, or a prefix followed by '*' */
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
    struct v2_role *roles; /* sorted by name, without the role root */
    size_t role_count;
};

/* -- The document -- */

/* An empty text is a policy without users and roles. ST_MALFORMED, ST_LIMIT, ST_NOMEM. */
MUST_CHECK
enum status v2_policy_read(struct arena *arena, struct slice text, struct v2_policy *ret_policy);
/* ST_LIMIT: the text is longer than V2_POLICY_BYTES_MAX. */
MUST_CHECK
enum status v2_policy_write(const struct v2_policy *policy, struct buf *to);

/* NULL: it does not exist. */
struct v2_user *v2_policy_user(const struct v2_policy *policy, struct slice name);
/* The role root always exists. */
const struct v2_role *v2_policy_role(const struct v2_policy *policy, struct slice name);

/* Insert at the sorted position; the name must be new. ST_NOMEM. */
MUST_CHECK
enum status v2_policy_add_user(struct arena *arena, struct v2_policy *policy,
                               const struct v2_user *user);
MUST_CHECK
enum status v2_policy_add_role(struct arena *arena, struct v2_policy *policy,
                               const struct v2_role *role);
/* False: it does not exist. */
bool v2_policy_remove_user(struct v2_policy *policy, struct slice name);
bool v2_policy_remove_role(struct v2_policy *policy, struct slice name);

/* Adds the role root to the user root, which always has it. */
MUST_CHECK
enum status v2_user_complete(struct arena *arena, struct v2_user *user);

/* -- Checks -- */

bool v2_names_contain(const struct v2_names *names, struct slice name);

struct v2_access {
    struct slice path; /* as in the request, such as "/a/b" */
    bool write;
    bool recursive; /* includes everything below: only patterns with '*' permit it */
};
bool v2_role_allows(const struct v2_role *role, const struct v2_access *access);
/* Whether any of these roles permits the access. Roles that do not exist permit nothing. */
bool v2_policy_allows(const struct v2_policy *policy, const struct v2_names *roles,
                      const struct v2_access *access);

/* -- Sets: sorted, never null -- */

/* The union of two lists. ST_INVALID: *ret_name is in both. ST_LIMIT: more than
 * V2_POLICY_NAMES_MAX.
 */
MUST_CHECK
enum status v2_names_grant(struct arena *arena, const struct v2_names *names,
                           const struct v2_names *more, struct v2_names *ret_names,
                           struct slice *ret_name);
/* The names that are not in a second list. ST_INVALID: *ret_name is only in the second; if ret_name
 * is NULL, such names are ignored. */
MUST_CHECK
enum status v2_names_revoke(struct arena *arena, const struct v2_names *names,
                            const struct v2_names *less, struct v2_names *ret_names,
                            struct slice *ret_name);
bool v2_names_equal(const struct v2_names *a, const struct v2_names *b);

/* -- JSON of requests and answers -- */

/* Parse a string, a list of strings, or {"kv":{"read":…,"write":…}}. NULL and null give an empty
 * result. ST_MALFORMED: it is something else; ST_LIMIT: a string or list is too long. */
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
