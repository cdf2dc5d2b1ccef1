#include "etcd/v2/policy_change.h"

#include <stdarg.h>
#include <stdio.h>

bool v2_refuse(struct v2_refusal *refusal, unsigned code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    refusal->code = code;
    vsnprintf(refusal->text, sizeof(refusal->text), format, args);
    va_end(args);
    return false;
}

static bool refuse_status(struct v2_refusal *refusal, enum status status)
{
    return v2_refuse(refusal, 500, "%s", status_text(status));
}

/* -- Bodies -- */

static bool refuse_body(struct v2_refusal *refusal, enum status status)
{
    if (status == ST_LIMIT)
        return v2_refuse(refusal, 400, "a name has at most %d bytes, and a list %d of them",
                         V2_POLICY_NAME_BYTES_MAX, V2_POLICY_NAMES_MAX);
    return v2_refuse(refusal, 400, "Invalid JSON in request body.");
}

/* An object; null is an empty one. */
static enum status read_root(struct arena *arena, struct slice body, struct json_node **ret_root)
{
    struct error error;
    struct json_node *root;
    TRY(json_tree_read(arena, body, &root, &error));
    if (root->type == JSON_TYPE_NULL)
        root = NULL;
    else if (root->type != JSON_TYPE_OBJECT)
        return ST_MALFORMED;
    *ret_root = root;
    return ST_OK;
}

static enum status read_user(struct arena *arena, struct slice body, struct v2_user_change *to)
{
    struct json_node *root;
    struct slice password;
    TRY(read_root(arena, body, &root));
    TRY(v2_name_read(arena, json_node_named(root, "user"), &to->user.name));
    TRY(v2_name_read(arena, json_node_named(root, "password"), &password));
    TRY(arena_dup(arena, password, &to->password)); /* the body may be freed while it is hashed */
    TRY(v2_names_read(arena, json_node_named(root, "roles"), &to->user.roles));
    TRY(v2_names_read(arena, json_node_named(root, "grant"), &to->grant));
    return v2_names_read(arena, json_node_named(root, "revoke"), &to->revoke);
}

bool v2_user_change_read(struct arena *arena, struct slice body, struct slice name,
                         struct v2_user_change *ret_change, struct v2_refusal *refusal)
{
    *ret_change = (struct v2_user_change){0};
    enum status status = read_user(arena, body, ret_change);
    if (status != ST_OK)
        return refuse_body(refusal, status);
    if (!slice_equal(ret_change->user.name, name))
        return v2_refuse(refusal, 400, "User JSON name does not match the name in the URL");
    if ((ret_change->grant.count || ret_change->revoke.count) && ret_change->user.roles.count)
        return v2_refuse(refusal, 400, "User JSON contains both roles and grant/revoke");
    return true;
}

static bool is_empty(const struct v2_rights *rights)
{
    return rights->read.count == 0 && rights->write.count == 0;
}

static bool is_update(const struct v2_role_change *change)
{
    return !is_empty(&change->grant) || !is_empty(&change->revoke);
}

static enum status read_role(struct arena *arena, struct slice body, struct v2_role_change *to)
{
    struct json_node *root;
    TRY(read_root(arena, body, &root));
    TRY(v2_name_read(arena, json_node_named(root, "role"), &to->role.name));
    TRY(v2_rights_read(arena, json_node_named(root, "permissions"), &to->role.rights));
    TRY(v2_rights_read(arena, json_node_named(root, "grant"), &to->grant));
    return v2_rights_read(arena, json_node_named(root, "revoke"), &to->revoke);
}

bool v2_role_change_read(struct arena *arena, struct slice body, struct slice name,
                         struct v2_role_change *ret_change, struct v2_refusal *refusal)
{
    *ret_change = (struct v2_role_change){0};
    enum status status = read_role(arena, body, ret_change);
    if (status != ST_OK)
        return refuse_body(refusal, status);
    if (!slice_equal(ret_change->role.name, name))
        return v2_refuse(refusal, 400, "Role JSON name does not match the name in the URL");
    if (is_update(ret_change) && !is_empty(&ret_change->role.rights))
        return v2_refuse(refusal, 400, "Role JSON contains both permissions and grant/revoke");
    return true;
}

/* -- Users -- */

static bool create_user(struct arena *arena, struct v2_policy *policy,
                        const struct v2_user_change *change, struct v2_user *ret_user,
                        struct v2_refusal *refusal)
{
    struct v2_user user = change->user;
    if (change->password.len == 0)
        return v2_refuse(refusal, 400, "auth: Cannot create user %.*s with an empty password",
                         SLICE_ARGS(user.name));
    if (v2_policy_user(policy, user.name))
        return v2_refuse(refusal, 409, "auth: User %.*s already exists.", SLICE_ARGS(user.name));
    enum status status = v2_user_complete(arena, &user);
    if (status == ST_OK)
        status = v2_policy_add_user(arena, policy, &user);
    if (status != ST_OK)
        return refuse_status(refusal, status);
    *ret_user = user;
    return true;
}

static bool refuse_names(struct v2_refusal *refusal, enum status status, const char *what,
                         struct slice name)
{
    if (status == ST_INVALID)
        return v2_refuse(refusal, 409, "auth: %s %.*s", what, SLICE_ARGS(name));
    if (status == ST_LIMIT)
        return refuse_body(refusal, status);
    return refuse_status(refusal, status);
}

static bool update_user(struct arena *arena, struct v2_policy *policy,
                        const struct v2_user_change *change, struct v2_user *ret_user,
                        struct v2_refusal *refusal)
{
    struct slice name = change->user.name, role;
    struct v2_user *stored = v2_policy_user(policy, name);
    if (!stored)
        return v2_refuse(refusal, 404, "auth: User %.*s does not exist.", SLICE_ARGS(name));
    struct v2_user old = *stored, user;
    enum status status = v2_user_complete(arena, &old);
    if (status != ST_OK)
        return refuse_status(refusal, status);
    user = old;
    if (change->password.len)
        user.hash = change->user.hash;
    status = v2_names_grant(arena, &old.roles, &change->grant, &user.roles, &role);
    if (status == ST_INVALID)
        return v2_refuse(refusal, 409, "auth: Granting duplicate role %.*s for user %.*s",
                         SLICE_ARGS(role), SLICE_ARGS(name));
    if (status == ST_OK)
        status = v2_names_revoke(arena, &user.roles, &change->revoke, &user.roles, &role);
    if (status == ST_INVALID)
        return v2_refuse(refusal, 409, "auth: Revoking ungranted role %.*s for user %.*s",
                         SLICE_ARGS(role), SLICE_ARGS(name));
    if (status != ST_OK)
        return refuse_names(refusal, status, "", role);
    if (change->password.len == 0 && v2_names_equal(&old.roles, &user.roles))
        return v2_refuse(refusal, 400,
                         "auth: User not updated. Use grant/revoke/password to update the user.");
    *ret_user = *stored = user;
    return true;
}

bool v2_user_put(struct arena *arena, struct v2_policy *policy, const struct v2_user_change *change,
                 struct v2_user *ret_user, bool *ret_created, struct v2_refusal *refusal)
{
    bool updates = change->grant.count || change->revoke.count;
    bool is_there = v2_policy_user(policy, change->user.name);
    /* A request with roles always creates a user, but etcd does not answer it with 201. */
    *ret_created = !updates && !is_there && change->user.roles.count == 0;
    if (updates || (is_there && change->user.roles.count == 0))
        return update_user(arena, policy, change, ret_user, refusal);
    return create_user(arena, policy, change, ret_user, refusal);
}

bool v2_user_delete(struct v2_policy *policy, struct slice name, struct v2_refusal *refusal)
{
    if (policy->enabled && slice_is(name, "root"))
        return v2_refuse(refusal, 403, "auth: Cannot delete root user while auth is enabled.");
    if (!v2_policy_remove_user(policy, name))
        return v2_refuse(refusal, 404, "auth: User %.*s does not exist", SLICE_ARGS(name));
    return true;
}

/* -- Roles -- */

static bool is_root_role(struct slice name, struct v2_refusal *refusal)
{
    if (!slice_is(name, V2_ROOT_ROLE))
        return false;
    (void)v2_refuse(refusal, 403, "auth: Cannot modify role root: is root role.");
    return true;
}

static bool create_role(struct arena *arena, struct v2_policy *policy, const struct v2_role *role,
                        struct v2_refusal *refusal)
{
    if (v2_policy_role(policy, role->name))
        return v2_refuse(refusal, 409, "auth: Role %.*s already exists.", SLICE_ARGS(role->name));
    enum status status = v2_policy_add_role(arena, policy, role);
    return status == ST_OK || refuse_status(refusal, status);
}

static bool change_names(struct arena *arena, const struct v2_names *grant,
                         const struct v2_names *revoke, const char *what, struct v2_names *names,
                         struct v2_refusal *refusal)
{
    struct slice name = SLICE_EMPTY;
    enum status status = v2_names_grant(arena, names, grant, names, &name);
    if (status == ST_OK)
        status = v2_names_revoke(arena, names, revoke, names, NULL);
    return status == ST_OK || refuse_names(refusal, status, what, name);
}

static bool update_role(struct arena *arena, struct v2_policy *policy,
                        const struct v2_role_change *change, struct v2_role *ret_role,
                        struct v2_refusal *refusal)
{
    const struct v2_role *old = v2_policy_role(policy, change->role.name);
    if (!old)
        return v2_refuse(refusal, 404, "auth: Role %.*s does not exist.",
                         SLICE_ARGS(change->role.name));
    struct v2_role role = *old;
    if (!change_names(arena, &change->grant.read, &change->revoke.read,
                      "Granting duplicate read permission", &role.rights.read, refusal) ||
        !change_names(arena, &change->grant.write, &change->revoke.write,
                      "Granting duplicate write permission", &role.rights.write, refusal))
        return false;
    if (v2_names_equal(&old->rights.read, &role.rights.read) &&
        v2_names_equal(&old->rights.write, &role.rights.write))
        return v2_refuse(refusal, 400,
                         "auth: Role not updated. Use grant/revoke to update the role.");
    policy->roles[old - policy->roles] = role;
    *ret_role = role;
    return true;
}

bool v2_role_put(struct arena *arena, struct v2_policy *policy, const struct v2_role_change *change,
                 struct v2_role *ret_role, bool *ret_created, struct v2_refusal *refusal)
{
    *ret_created = !is_update(change);
    *ret_role = change->role;
    if (is_root_role(change->role.name, refusal))
        return false;
    if (*ret_created)
        return create_role(arena, policy, &change->role, refusal);
    return update_role(arena, policy, change, ret_role, refusal);
}

bool v2_role_delete(struct v2_policy *policy, struct slice name, struct v2_refusal *refusal)
{
    if (is_root_role(name, refusal))
        return false;
    if (!v2_policy_remove_role(policy, name))
        return v2_refuse(refusal, 404, "auth: Role %.*s doesn't exist.", SLICE_ARGS(name));
    return true;
}

/* -- Enabling -- */

bool v2_policy_enable(struct arena *arena, struct v2_policy *policy, struct v2_refusal *refusal)
{
    static struct slice everything = SLICE_LITERAL("/*");
    static const struct v2_role guest = {
        .name = SLICE_LITERAL(V2_GUEST_ROLE),
        .rights = {.read = {&everything, 1, true}, .write = {&everything, 1, true}},
    };
    if (policy->enabled)
        return v2_refuse(refusal, 409, "auth: already enabled");
    if (!v2_policy_user(policy, SLICE_LITERAL("root")))
        return v2_refuse(refusal, 409, "auth: No root user available, please create one");
    if (!v2_policy_role(policy, guest.name) && !create_role(arena, policy, &guest, refusal))
        return false;
    policy->enabled = true;
    return true;
}

bool v2_policy_disable(struct v2_policy *policy, struct v2_refusal *refusal)
{
    if (!policy->enabled)
        return v2_refuse(refusal, 409, "auth: already disabled");
    policy->enabled = false;
    return true;
}
