#include "etcd/v2/policy.h"

/* -- Reading -- */

static bool is_nothing(const struct json_node *node)
{
    return !node || node->type == JSON_TYPE_NULL;
}

enum status v2_name_read(struct arena *arena, const struct json_node *node, struct slice *ret_name)
{
    struct slice name = SLICE_EMPTY;
    if (!is_nothing(node)) {
        if (node->type != JSON_TYPE_STRING)
            return ST_MALFORMED;
        TRY(json_node_text(node, arena, &name));
    }
    if (name.len > V2_POLICY_NAME_BYTES_MAX)
        return ST_LIMIT;
    *ret_name = name;
    return ST_OK;
}

enum status v2_names_read(struct arena *arena, const struct json_node *node,
                          struct v2_names *ret_names)
{
    struct v2_names names = {0};
    if (!is_nothing(node)) {
        if (node->type != JSON_TYPE_ARRAY)
            return ST_MALFORMED;
        if (node->count > V2_POLICY_NAMES_MAX)
            return ST_LIMIT;
        names.given = true;
        names.list = arena_calloc(arena, node->count, sizeof(*names.list));
        if (node->count && !names.list)
            return ST_NOMEM;
        for (const struct json_node *item = node->first; item; item = item->next)
            TRY(v2_name_read(arena, item, &names.list[names.count++]));
    }
    *ret_names = names;
    return ST_OK;
}

enum status v2_rights_read(struct arena *arena, const struct json_node *node,
                           struct v2_rights *ret_rights)
{
    struct v2_rights rights = {0};
    const struct json_node *kv = NULL;
    if (!is_nothing(node)) {
        if (node->type != JSON_TYPE_OBJECT)
            return ST_MALFORMED;
        kv = json_node_named(node, "kv");
    }
    if (!is_nothing(kv)) {
        if (kv->type != JSON_TYPE_OBJECT)
            return ST_MALFORMED;
        TRY(v2_names_read(arena, json_node_named(kv, "read"), &rights.read));
        TRY(v2_names_read(arena, json_node_named(kv, "write"), &rights.write));
    }
    *ret_rights = rights;
    return ST_OK;
}

static enum status read_user(struct arena *arena, const struct json_node *node,
                             struct v2_user *ret_user)
{
    if (node->type != JSON_TYPE_OBJECT)
        return ST_MALFORMED;
    TRY(v2_name_read(arena, json_node_named(node, "user"), &ret_user->name));
    TRY(v2_name_read(arena, json_node_named(node, "hash"), &ret_user->hash));
    return v2_names_read(arena, json_node_named(node, "roles"), &ret_user->roles);
}

static enum status read_role(struct arena *arena, const struct json_node *node,
                             struct v2_role *ret_role)
{
    if (node->type != JSON_TYPE_OBJECT)
        return ST_MALFORMED;
    TRY(v2_name_read(arena, json_node_named(node, "role"), &ret_role->name));
    return v2_rights_read(arena, json_node_named(node, "permissions"), &ret_role->rights);
}

/* What this server writes is sorted, but a client of v3 may have written something else. */
static bool is_sorted(const struct v2_policy *policy)
{
    for (size_t i = 1; i < policy->user_count; i++) {
        if (slice_compare(policy->users[i - 1].name, policy->users[i].name) >= 0)
            return false;
    }
    for (size_t i = 1; i < policy->role_count; i++) {
        if (slice_compare(policy->roles[i - 1].name, policy->roles[i].name) >= 0)
            return false;
    }
    return true;
}

static enum status read_lists(struct arena *arena, const struct json_node *users,
                              const struct json_node *roles, struct v2_policy *policy)
{
    policy->users = arena_calloc(arena, users->count, sizeof(*policy->users));
    policy->roles = arena_calloc(arena, roles->count, sizeof(*policy->roles));
    if ((users->count && !policy->users) || (roles->count && !policy->roles))
        return ST_NOMEM;
    for (const struct json_node *node = users->first; node; node = node->next)
        TRY(read_user(arena, node, &policy->users[policy->user_count++]));
    for (const struct json_node *node = roles->first; node; node = node->next)
        TRY(read_role(arena, node, &policy->roles[policy->role_count++]));
    return is_sorted(policy) ? ST_OK : ST_MALFORMED;
}

enum status v2_policy_read(struct arena *arena, struct slice text, struct v2_policy *ret_policy)
{
    struct v2_policy policy = {0};
    struct json_node *root;
    struct error error;
    if (text.len > V2_POLICY_BYTES_MAX)
        return ST_LIMIT;
    if (text.len) {
        TRY(json_tree_read(arena, text, &root, &error));
        const struct json_node *enabled = json_node_named(root, "enabled");
        const struct json_node *users = json_node_named(root, "users");
        const struct json_node *roles = json_node_named(root, "roles");
        if (!enabled || enabled->type != JSON_TYPE_BOOL || !users ||
            users->type != JSON_TYPE_ARRAY || !roles || roles->type != JSON_TYPE_ARRAY)
            return ST_MALFORMED;
        policy.enabled = enabled->truth;
        TRY(read_lists(arena, users, roles, &policy));
    }
    *ret_policy = policy;
    return ST_OK;
}

/* -- Writing -- */

void v2_names_json(struct json_writer *w, const struct v2_names *names)
{
    if (!names->given) {
        json_null(w);
        return;
    }
    json_strings(w, names->list, names->count);
}

void v2_role_json(struct json_writer *w, const struct v2_role *role)
{
    json_begin_object(w);
    json_member_string(w, "role", role->name);
    json_member_object(w, "permissions");
    json_member_object(w, "kv");
    json_key(w, "read");
    v2_names_json(w, &role->rights.read);
    json_key(w, "write");
    v2_names_json(w, &role->rights.write);
    json_end_object(w);
    json_end_object(w);
    json_end_object(w);
}

static void write_user(struct json_writer *w, const struct v2_user *user)
{
    json_begin_object(w);
    json_member_string(w, "user", user->name);
    json_member_string(w, "hash", user->hash);
    json_key(w, "roles");
    v2_names_json(w, &user->roles);
    json_end_object(w);
}

enum status v2_policy_write(const struct v2_policy *policy, struct buf *to)
{
    struct json_writer w;
    json_writer_init(&w, to);
    json_begin_object(&w);
    json_member_bool(&w, "enabled", policy->enabled);
    json_member_array(&w, "users");
    for (size_t i = 0; i < policy->user_count; i++)
        write_user(&w, &policy->users[i]);
    json_end_array(&w);
    json_member_array(&w, "roles");
    for (size_t i = 0; i < policy->role_count; i++)
        v2_role_json(&w, &policy->roles[i]);
    json_end_array(&w);
    json_end_object(&w);
    TRY(json_writer_finish(&w));
    return to->len <= V2_POLICY_BYTES_MAX ? ST_OK : ST_LIMIT;
}

/* -- Users and roles -- */

/* The index where a name is or would be inserted. The name is the first member of each item. */
static size_t find(const void *items, size_t count, size_t item_bytes, struct slice name)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct slice *at = (const void *)((const uint8_t *)items + middle * item_bytes);
        if (slice_compare(*at, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static_assert(offsetof(struct v2_user, name) == 0, "find looks for it there");
static_assert(offsetof(struct v2_role, name) == 0, "find looks for it there");

struct v2_user *v2_policy_user(const struct v2_policy *policy, struct slice name)
{
    size_t at = find(policy->users, policy->user_count, sizeof(*policy->users), name);
    bool is_there = at < policy->user_count && slice_equal(policy->users[at].name, name);
    return is_there ? &policy->users[at] : NULL;
}

static const struct v2_role *root_role(void)
{
    static struct slice everything = SLICE_LITERAL("/*");
    static const struct v2_role role = {
        .name = SLICE_LITERAL(V2_ROOT_ROLE),
        .rights = {.read = {&everything, 1, true}, .write = {&everything, 1, true}},
    };
    return &role;
}

const struct v2_role *v2_policy_role(const struct v2_policy *policy, struct slice name)
{
    if (slice_is(name, V2_ROOT_ROLE))
        return root_role();
    size_t at = find(policy->roles, policy->role_count, sizeof(*policy->roles), name);
    bool is_there = at < policy->role_count && slice_equal(policy->roles[at].name, name);
    return is_there ? &policy->roles[at] : NULL;
}

enum status v2_policy_add_user(struct arena *arena, struct v2_policy *policy,
                               const struct v2_user *user)
{
    size_t count = policy->user_count;
    size_t at = find(policy->users, count, sizeof(*policy->users), user->name);
    struct v2_user *users = arena_calloc(arena, count + 1, sizeof(*users));
    if (!users)
        return ST_NOMEM;
    for (size_t i = 0; i < count; i++)
        users[i + (i >= at)] = policy->users[i];
    users[at] = *user;
    policy->users = users;
    policy->user_count++;
    return ST_OK;
}

enum status v2_policy_add_role(struct arena *arena, struct v2_policy *policy,
                               const struct v2_role *role)
{
    size_t count = policy->role_count;
    size_t at = find(policy->roles, count, sizeof(*policy->roles), role->name);
    struct v2_role *roles = arena_calloc(arena, count + 1, sizeof(*roles));
    if (!roles)
        return ST_NOMEM;
    for (size_t i = 0; i < count; i++)
        roles[i + (i >= at)] = policy->roles[i];
    roles[at] = *role;
    policy->roles = roles;
    policy->role_count++;
    return ST_OK;
}

bool v2_policy_remove_user(struct v2_policy *policy, struct slice name)
{
    struct v2_user *user = v2_policy_user(policy, name);
    if (!user)
        return false;
    for (struct v2_user *last = &policy->users[--policy->user_count]; user < last; user++)
        user[0] = user[1];
    return true;
}

bool v2_policy_remove_role(struct v2_policy *policy, struct slice name)
{
    size_t at = find(policy->roles, policy->role_count, sizeof(*policy->roles), name);
    if (at == policy->role_count || !slice_equal(policy->roles[at].name, name))
        return false;
    for (policy->role_count--; at < policy->role_count; at++)
        policy->roles[at] = policy->roles[at + 1];
    return true;
}

enum status v2_user_complete(struct arena *arena, struct v2_user *user)
{
    struct slice root = SLICE_LITERAL(V2_ROOT_ROLE);
    const struct v2_names *had = &user->roles;
    if (!slice_equal(user->name, root) || v2_names_contain(had, root))
        return ST_OK;
    struct slice *list = arena_calloc(arena, had->count + 1, sizeof(*list));
    if (!list)
        return ST_NOMEM;
    for (size_t i = 0; i < had->count; i++)
        list[i] = had->list[i];
    list[had->count] = root;
    user->roles = (struct v2_names){.list = list, .count = had->count + 1, .given = true};
    return ST_OK;
}

/* -- Checks -- */

bool v2_names_contain(const struct v2_names *names, struct slice name)
{
    for (size_t i = 0; i < names->count; i++) {
        if (slice_equal(names->list[i], name))
            return true;
    }
    return false;
}

static bool matches(struct slice pattern, const struct v2_access *access)
{
    bool is_prefix = pattern.len && pattern.ptr[pattern.len - 1] == '*';
    if (is_prefix)
        return slice_has_prefix(access->path, slice_sub(pattern, 0, pattern.len - 1));
    return pattern.len && !access->recursive && slice_equal(access->path, pattern);
}

bool v2_role_allows(const struct v2_role *role, const struct v2_access *access)
{
    const struct v2_names *patterns = access->write ? &role->rights.write : &role->rights.read;
    if (slice_is(role->name, V2_ROOT_ROLE))
        return true;
    for (size_t i = 0; i < patterns->count; i++) {
        if (matches(patterns->list[i], access))
            return true;
    }
    return false;
}

bool v2_policy_allows(const struct v2_policy *policy, const struct v2_names *roles,
                      const struct v2_access *access)
{
    for (size_t i = 0; i < roles->count; i++) {
        const struct v2_role *role = v2_policy_role(policy, roles->list[i]);
        if (role && v2_role_allows(role, access))
            return true;
    }
    return false;
}

/* -- Sets -- */

static void insert(struct v2_names *set, struct slice name)
{
    size_t at = find(set->list, set->count, sizeof(*set->list), name);
    if (at < set->count && slice_equal(set->list[at], name))
        return;
    for (size_t i = set->count++; i > at; i--)
        set->list[i] = set->list[i - 1];
    set->list[at] = name;
}

/* A sorted copy of the names, with room for `more` others. */
static enum status make_set(struct arena *arena, const struct v2_names *names, size_t more,
                            struct v2_names *ret_set)
{
    size_t count = names->count + more;
    struct v2_names set = {.given = true};
    set.list = arena_calloc(arena, count, sizeof(*set.list));
    if (count && !set.list)
        return ST_NOMEM;
    for (size_t i = 0; i < names->count; i++)
        insert(&set, names->list[i]);
    *ret_set = set;
    return ST_OK;
}

enum status v2_names_grant(struct arena *arena, const struct v2_names *names,
                           const struct v2_names *more, struct v2_names *ret_names,
                           struct slice *ret_name)
{
    struct v2_names set;
    TRY(make_set(arena, names, more->count, &set));
    for (size_t i = 0; i < more->count; i++) {
        size_t before = set.count;
        insert(&set, more->list[i]);
        if (set.count == before) {
            *ret_name = more->list[i];
            return ST_INVALID;
        }
    }
    if (set.count > V2_POLICY_NAMES_MAX)
        return ST_LIMIT;
    *ret_names = set;
    return ST_OK;
}

enum status v2_names_revoke(struct arena *arena, const struct v2_names *names,
                            const struct v2_names *less, struct v2_names *ret_names,
                            struct slice *ret_name)
{
    struct v2_names set;
    TRY(make_set(arena, names, 0, &set));
    for (size_t i = 0; i < less->count; i++) {
        size_t at = find(set.list, set.count, sizeof(*set.list), less->list[i]);
        bool is_there = at < set.count && slice_equal(set.list[at], less->list[i]);
        if (!is_there && ret_name) {
            *ret_name = less->list[i];
            return ST_INVALID;
        }
        if (!is_there)
            continue;
        for (set.count--; at < set.count; at++)
            set.list[at] = set.list[at + 1];
    }
    *ret_names = set;
    return ST_OK;
}

bool v2_names_equal(const struct v2_names *a, const struct v2_names *b)
{
    if (a->given != b->given || a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        if (!slice_equal(a->list[i], b->list[i]))
            return false;
    }
    return true;
}
