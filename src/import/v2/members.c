#include "import/v2/members.h"

#include "base/xalloc.h"
#include "codec/json/number.h"
#include "codec/json/tree.h"
#include "import/v2/notes.h"

#include <inttypes.h>

#define MEMBERS "/0/members"
#define REMOVED "/0/removed_members"
#define VERSION "/0/version"
/* The newest version whose stores the original reads, and its own. */
#define NEWEST ((struct v2_version){.major = 3, .minor = 4})
#define NEWEST_TEXT "3.4.23"

enum { CHANGE_ADD, CHANGE_REMOVE, CHANGE_UPDATE, CHANGE_ADD_LEARNER, ID_BYTES = 17 };
#define ARENA_BYTES_MAX ((size_t)64 << 20)

struct v2_member {
    uint64_t id;
    struct slice urls[V2_MEMBER_URLS_MAX]; /* owned */
    size_t url_count;
    bool is_learner, is_promoted;
};

static void member_fini(struct v2_member *member)
{
    for (size_t i = 0; i < member->url_count; i++)
        free((void *)(uintptr_t)member->urls[i].ptr);
    member->url_count = 0;
}

void v2_members_init(struct v2_members *members, struct v2_tree *tree, FILE *notes)
{
    *members = (struct v2_members){.tree = tree, .notes = notes};
}

void v2_members_fini(struct v2_members *members)
{
    for (size_t i = 0; i < members->count; i++)
        member_fini(&members->all[i]);
    free(members->all);
    free(members->removed);
    members->all = NULL;
    members->removed = NULL;
    members->count = members->removed_count = 0;
}

static struct v2_member *find(const struct v2_members *members, uint64_t id)
{
    for (size_t i = 0; i < members->count; i++) {
        if (members->all[i].id == id)
            return &members->all[i];
    }
    return NULL;
}

static bool was_removed(const struct v2_members *members, uint64_t id)
{
    for (size_t i = 0; i < members->removed_count; i++) {
        if (members->removed[i] == id)
            return true;
    }
    return false;
}

static enum status add(struct v2_members *members, const struct v2_member *member,
                       struct error *ret_error)
{
    if (members->count == V2_MEMBERS_MAX)
        return error_set(ret_error, ST_LIMIT, "the cluster has more than %d members",
                         V2_MEMBERS_MAX);
    members->all = xrealloc(members->all, (members->count + 1) * sizeof(*members->all));
    members->all[members->count++] = *member;
    return ST_OK;
}

static enum status add_removed(struct v2_members *members, uint64_t id, struct error *ret_error)
{
    if (members->removed_count == V2_MEMBERS_REMOVED_MAX)
        return error_set(ret_error, ST_LIMIT, "more than %d members were removed from the cluster",
                         V2_MEMBERS_REMOVED_MAX);
    size_t bytes = (members->removed_count + 1) * sizeof(*members->removed);
    members->removed = xrealloc(members->removed, bytes);
    members->removed[members->removed_count++] = id;
    return ST_OK;
}

/* -- Notes -- */

/* The store is rebuilt outside of a cluster, whose id and member are therefore 0. */
#define NOWHERE                                \
    {.name = "cluster-id", .text = "0"},       \
    {                                          \
        .name = "local-member-id", .text = "0" \
    }

static void note_member(const struct v2_members *members, const char *message, const char *id_name,
                        const char *urls_name, const struct v2_member *member)
{
    char id[ID_BYTES];
    snprintf(id, sizeof(id), "%" PRIx64, member->id);
    v2_note_write(members->notes,
                  &(struct v2_note){
                      "info",
                      message,
                      {NOWHERE,
                       {.name = id_name, .text = id},
                       {.name = urls_name, .texts = member->urls, .text_count = member->url_count}},
                  });
}

static void note_id(const struct v2_members *members, const char *level, const char *message,
                    const char *id_name, uint64_t number)
{
    char id[ID_BYTES];
    snprintf(id, sizeof(id), "%" PRIx64, number);
    v2_note_write(members->notes,
                  &(struct v2_note){level, message, {NOWHERE, {.name = id_name, .text = id}}});
}

/* -- Versions -- */

struct version_text {
    char text[48];
};

static struct version_text short_text(struct v2_version version)
{
    struct version_text text;
    snprintf(text.text, sizeof(text.text), "%" PRIu64 ".%" PRIu64, version.major, version.minor);
    return text;
}

static int compare_versions(struct v2_version a, struct v2_version b)
{
    if (a.major != b.major)
        return a.major < b.major ? -1 : 1;
    if (a.minor != b.minor)
        return a.minor < b.minor ? -1 : 1;
    return (a.patch > b.patch) - (a.patch < b.patch);
}

static enum status parse_version(struct slice text, struct v2_version *ret_version,
                                 struct error *ret_error)
{
    struct slice rest = text, major = slice_cut(&rest, '.'), minor = slice_cut(&rest, '.');
    if (!slice_decimal(major, &ret_version->major) || !slice_decimal(minor, &ret_version->minor) ||
        !slice_decimal(rest, &ret_version->patch))
        return error_set(ret_error, ST_DAMAGED, "the cluster's version is not one: %.*s",
                         (int)size_min(text.len, 64), (const char *)text.ptr);
    return ST_OK;
}

static enum status check_version(const struct v2_members *members, struct v2_version version,
                                 struct error *ret_error)
{
    struct version_text text = short_text(version);
    /* The cluster is not newer than the versions whose v2 store is known. */
    if (compare_versions(NEWEST, version) >= 0)
        return ST_OK;
    v2_note_write(members->notes,
                  &(struct v2_note){
                      "fatal",
                      "invalid downgrade; server version is lower than determined cluster version",
                      {{.name = "current-server-version", .text = NEWEST_TEXT},
                       {.name = "determined-cluster-version", .text = text.text}},
                  });
    return error_set(ret_error, ST_WRONG_FORMAT,
                     "the directory is of etcd %s, and the v2 store is read up to 3.4", text.text);
}

static void note_capabilities(const struct v2_members *members, struct v2_version version)
{
    struct version_text text = short_text(version);
    if (!members->has_version || compare_versions(members->version, version) < 0)
        v2_note_write(members->notes, &(struct v2_note){
                                          "info",
                                          "enabled capabilities for version",
                                          {{.name = "cluster-version", .text = text.text}},
                                      });
}

static void note_new_version(const struct v2_members *members, struct v2_version version)
{
    struct version_text to = short_text(version), from = short_text(members->version);
    struct v2_note first = {"info",
                            "set initial cluster version",
                            {NOWHERE, {.name = "cluster-version", .text = to.text}}};
    struct v2_note later = {
        "info",
        "updated cluster version",
        {NOWHERE, {.name = "from", .text = from.text}, {.name = "from", .text = to.text}}};
    v2_note_write(members->notes, members->has_version ? &later : &first);
}

static enum status set_version(struct v2_members *members, struct slice text,
                               struct error *ret_error)
{
    struct v2_version version;
    TRY(parse_version(text, &version, ret_error));
    note_new_version(members, version);
    TRY(check_version(members, version, ret_error));
    members->tree->index++;
    note_capabilities(members, version);
    members->version = version;
    members->has_version = true;
    return ST_OK;
}

/* -- From the tree of a snapshot -- */

static enum status parse_id(struct slice text, uint64_t *ret_id, struct error *ret_error)
{
    uint64_t id = 0;
    bool valid = text.len > 0 && text.len < ID_BYTES;
    for (size_t i = 0; i < text.len && valid; i++) {
        uint8_t c = text.ptr[i] | 0x20;
        bool is_digit = text.ptr[i] >= '0' && text.ptr[i] <= '9', is_hex = c >= 'a' && c <= 'f';
        valid = is_digit || is_hex;
        id = id << 4 | (uint64_t)(is_digit ? text.ptr[i] - '0' : c - 'a' + 10);
    }
    *ret_id = id;
    return valid ? ST_OK : error_set(ret_error, ST_DAMAGED, "the id of a member is not one");
}

static enum status take_url(struct v2_member *member, const struct json_node *item,
                            struct arena *arena, struct error *ret_error)
{
    struct slice text;
    TRY(json_node_text(item, arena, &text));
    if (member->url_count == V2_MEMBER_URLS_MAX)
        return error_set(ret_error, ST_LIMIT, "a member has more than %d URLs", V2_MEMBER_URLS_MAX);
    uint8_t *copy = xmalloc(text.len + 1);
    slice_copy(copy, text);
    member->urls[member->url_count++] = slice_of(copy, text.len);
    return ST_OK;
}

/* The member is to be finished in any case. */
static enum status parse_member(struct slice json, struct arena *arena,
                                struct v2_member *ret_member, struct error *ret_error)
{
    struct json_node *root;
    struct error why;
    uint64_t number;
    *ret_member = (struct v2_member){0};
    if (json_tree_read(arena, json, &root, &why) != ST_OK || root->type != JSON_TYPE_OBJECT)
        return error_set(ret_error, ST_DAMAGED, "a member of the cluster is not JSON");
    const struct json_node *found = json_node_named(root, "id");
    if (found && found->type == JSON_TYPE_NUMBER && json_number_u64(found->text, &number))
        ret_member->id = number;
    ret_member->is_learner = json_node_is_true(json_node_named(root, "isLearner"));
    ret_member->is_promoted = json_node_is_true(json_node_named(root, "isPromote"));
    const struct json_node *urls = json_node_named(root, "peerURLs");
    if (!urls || urls->type != JSON_TYPE_ARRAY)
        return ST_OK;
    for (const struct json_node *item = urls->first; item; item = item->next)
        TRY(take_url(ret_member, item, arena, ret_error));
    return ST_OK;
}

static enum status recover_member(struct v2_members *members, const struct v2_tree_node *node,
                                  struct arena *arena, struct error *ret_error)
{
    const struct v2_tree_node *attributes =
        node->children ? hash_map_get(node->children, SLICE_LITERAL("raftAttributes")) : NULL;
    uint64_t id;
    TRY(parse_id(node->name, &id, ret_error));
    if (!attributes)
        return error_set(ret_error, ST_DAMAGED, "a member of the cluster has no raftAttributes");
    struct v2_member member;
    enum status status = parse_member(attributes->value, arena, &member, ret_error);
    member.id = id;
    if (status == ST_OK)
        status = add(members, &member, ret_error);
    if (status != ST_OK)
        member_fini(&member);
    return status;
}

/* Calls the function for each child of a directory, in the order of their names. */
static enum status for_children(struct v2_members *members, const char *path,
                                enum status (*fn)(struct v2_members *members,
                                                  const struct v2_tree_node *node,
                                                  struct arena *arena, struct error *ret_error),
                                struct error *ret_error)
{
    const struct v2_tree_node *dir = v2_tree_find(members->tree, path);
    if (!dir || !dir->children)
        return ST_OK;
    struct arena arena;
    size_t count;
    enum status status = ST_OK;
    const struct v2_tree_node **children = v2_tree_children(dir, &count);
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    for (size_t i = 0; i < count && status == ST_OK; i++)
        status = fn(members, children[i], &arena, ret_error);
    arena_fini(&arena);
    free(children);
    return status;
}

static enum status recover_removed(struct v2_members *members, const struct v2_tree_node *node,
                                   struct arena *arena, struct error *ret_error)
{
    uint64_t id;
    (void)arena;
    TRY(parse_id(node->name, &id, ret_error));
    return add_removed(members, id, ret_error);
}

enum status v2_members_recover(struct v2_members *members, struct error *ret_error)
{
    const struct v2_tree_node *node = v2_tree_find(members->tree, VERSION);
    struct v2_version version = {0};
    TRY(for_children(members, MEMBERS, recover_member, ret_error));
    TRY(for_children(members, REMOVED, recover_removed, ret_error));
    if (node) {
        TRY(parse_version(node->value, &version, ret_error));
        TRY(check_version(members, version, ret_error));
        note_capabilities(members, version);
        members->version = version;
        members->has_version = true;
    }
    for (size_t i = 0; i < members->count; i++)
        note_member(members, "recovered/added member from store", "recovered-remote-peer-id",
                    "recovered-remote-peer-urls", &members->all[i]);
    struct version_text text = short_text(version);
    if (node)
        v2_note_write(members->notes, &(struct v2_note){
                                          "info",
                                          "set cluster version from store",
                                          {{.name = "cluster-version", .text = text.text}},
                                      });
    return ST_OK;
}

/* -- Changes -- */

static bool url_is_taken(const struct v2_members *members, const struct v2_member *by)
{
    for (size_t i = 0; i < members->count; i++) {
        const struct v2_member *other = &members->all[i];
        for (size_t k = 0; k < other->url_count && other->id != by->id; k++) {
            for (size_t u = 0; u < by->url_count; u++) {
                if (slice_equal(other->urls[k], by->urls[u]))
                    return true;
            }
        }
    }
    return false;
}

/* A learner that is added takes no index: the original skips it. */
static enum status add_member(struct v2_members *members, const struct pb_log_conf_change *change,
                              struct v2_member *member, struct error *ret_error)
{
    struct v2_member *old = find(members, change->node_id);
    if (change->type == CHANGE_ADD_LEARNER)
        return ST_OK;
    /* A learner that is known becomes a full member; for any other nothing changes. */
    if (member->is_promoted) {
        if (old && old->is_learner) {
            old->is_learner = false;
            members->tree->index++;
        }
        return ST_OK;
    }
    /* etcd refuses such a member when the entry is applied, and so it did then. */
    if (old || url_is_taken(members, member))
        return ST_OK;
    TRY(add(members, member, ret_error));
    members->tree->index++;
    note_member(members, "added member", "added-peer-id", "added-peer-peer-urls", member);
    member->url_count = 0; /* the list has them now */
    return ST_OK;
}

static void update_member(struct v2_members *members, const struct pb_log_conf_change *change,
                          struct v2_member *member)
{
    struct v2_member *old = find(members, change->node_id);
    if (!old || url_is_taken(members, member))
        return;
    member_fini(old);
    memcpy(old->urls, member->urls, sizeof(old->urls));
    old->url_count = member->url_count;
    old->is_learner = member->is_learner;
    member->url_count = 0;
    members->tree->index++;
    note_member(members, "updated member", "updated-remote-peer-id", "updated-remote-peer-urls",
                old);
}

/* Its directory is deleted, and a file with its id created. */
static enum status remove_member(struct v2_members *members, uint64_t id, struct error *ret_error)
{
    struct v2_member *old = find(members, id);
    if (!old)
        return ST_OK;
    TRY(add_removed(members, id, ret_error));
    members->tree->index += 2;
    note_member(members, "removed member", "removed-remote-peer-id", "removed-remote-peer-urls",
                old);
    member_fini(old);
    *old = members->all[--members->count];
    return ST_OK;
}

enum status v2_members_change(struct v2_members *members, const struct pb_log_conf_change *change,
                              struct error *ret_error)
{
    /* The id of a removed member is never used again, and etcd ignores changes of it. */
    if (was_removed(members, change->node_id))
        return ST_OK;
    if (change->type == CHANGE_REMOVE)
        return remove_member(members, change->node_id, ret_error);
    if (change->type < CHANGE_ADD || change->type > CHANGE_ADD_LEARNER)
        return error_set(ret_error, ST_DAMAGED, "a change of the members is of no known kind");
    struct arena arena;
    struct v2_member member;
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    enum status status = parse_member(change->context, &arena, &member, ret_error);
    if (status == ST_OK && change->type == CHANGE_UPDATE)
        update_member(members, change, &member);
    else if (status == ST_OK)
        status = add_member(members, change, &member, ret_error);
    member_fini(&member);
    arena_fini(&arena);
    return status;
}

/* /0/members/ID/attributes: name and client URLs of a member. */
static enum status put_attributes(struct v2_members *members, uint64_t id, struct error *ret_error)
{
    if (find(members, id)) {
        members->tree->index++;
        return ST_OK;
    }
    if (was_removed(members, id)) {
        note_id(members, "warn", "skipped attributes update of removed member", "updated-peer-id",
                id);
        return ST_OK;
    }
    note_id(members, "panic", "failed to update; member unknown", "unknown-remote-peer-id", id);
    return error_set(ret_error, ST_DAMAGED,
                     "the log has attributes of the member %" PRIx64 ", which is not known", id);
}

enum status v2_members_put(struct v2_members *members, struct slice path, struct slice value,
                           bool *ret_taken, struct error *ret_error)
{
    const struct slice before = SLICE_LITERAL(MEMBERS "/"), behind = SLICE_LITERAL("attributes");
    struct slice rest = path;
    uint64_t id;
    *ret_taken = slice_is(path, VERSION);
    if (*ret_taken)
        return set_version(members, value, ret_error);
    if (!slice_has_prefix(path, before))
        return ST_OK;
    rest = slice_sub(path, before.len, path.len - before.len);
    struct slice name = slice_cut(&rest, '/');
    struct error ignored;
    *ret_taken = slice_equal(rest, behind) && parse_id(name, &id, &ignored) == ST_OK;
    return *ret_taken ? put_attributes(members, id, ret_error) : ST_OK;
}
