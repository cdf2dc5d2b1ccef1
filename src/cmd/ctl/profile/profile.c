#include "cmd/ctl/profile/profile.h"

#include "yaml/yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status no_memory(struct error *error)
{
    return error_set(error, ST_NOMEM, "out of memory");
}

/* -- Texts in the arena -- */

static const char *text_dup(struct arena *arena, struct slice text)
{
    char *copy = arena_alloc(arena, text.len + 1);
    if (!copy)
        return NULL;
    slice_copy(copy, text);
    copy[text.len] = '\0';
    return copy;
}

static const char *joined(struct arena *arena, struct slice first, const char *second)
{
    size_t len = first.len + strlen(second);
    char *text = arena_alloc(arena, len + 1);
    if (!text)
        return NULL;
    snprintf(text, len + 1, "%.*s%s", SLICE_ARGS(first), second);
    return text;
}

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

const char *profiles_path(struct arena *arena)
{
    const char *path = variable("VIGIL_PROFILES"), *config = variable("XDG_CONFIG_HOME");
    const char *home = variable("HOME");
    if (path)
        return path;
    if (config)
        return joined(arena, slice_from_text(config), "/vigil/profiles.yaml");
    return home ? joined(arena, slice_from_text(home), "/.config/vigil/profiles.yaml") : NULL;
}

/* -- The file -- */

static void close_file(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static enum status read_all(int fd, const char *path, struct buf *ret_text, struct error *error)
{
    if (buf_reserve(ret_text, PROFILE_FILE_BYTES_MAX + 1) != ST_OK)
        return no_memory(error);
    ssize_t n;
    while ((n = read(fd, ret_text->ptr + ret_text->len,
                     PROFILE_FILE_BYTES_MAX + 1 - ret_text->len)) > 0)
        ret_text->len += (size_t)n;
    if (n < 0)
        return error_set(error, ST_IO, "%s: %s", path, strerror(errno));
    if (ret_text->len > PROFILE_FILE_BYTES_MAX)
        return error_set(error, ST_LIMIT, "%s: a file of profiles has at most %d bytes", path,
                         PROFILE_FILE_BYTES_MAX);
    return ST_OK;
}

/* Non-blocking, so that a pipe in its place does not let the program wait. */
static enum status open_file(const char *path, int *ret_fd, struct stat *ret_stat,
                             struct error *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return error_set(error, errno == ENOENT ? ST_NOT_FOUND : ST_IO, "%s: %s", path,
                         strerror(errno));
    *ret_fd = fd;
    if (fstat(fd, ret_stat) != 0)
        return error_set(error, ST_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(ret_stat->st_mode))
        return error_set(error, ST_INVALID, "%s is not a regular file", path);
    return ST_OK;
}

/* -- Entries -- */

static bool is_one_of(struct slice name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slice_is(name, names[i]))
            return true;
    return false;
}

static bool is_path(struct slice name)
{
    static const char *const names[] = {"cacert", "cert", "key"};
    return is_one_of(name, names, COUNT_OF(names));
}

/* "user: name:password" is a flag of etcdctl. */
static bool is_secret(struct slice name, const char *value)
{
    static const char *const names[] = {"password", "auth-jwt-token", "token"};
    if (is_one_of(name, names, COUNT_OF(names)))
        return *value != '\0';
    return slice_is(name, "user") && strchr(value, ':');
}

/* Relative to the directory of the file. */
static const char *full_path(struct arena *arena, const char *file, const char *path)
{
    const char *home = variable("HOME"), *slash = strrchr(file, '/');
    if (home && path[0] == '~' && path[1] == '/')
        return joined(arena, slice_from_text(home), path + 1);
    if (path[0] == '/' || path[0] == '\0' || !slash)
        return path;
    return joined(arena, slice_of(file, (size_t)(slash - file) + 1), path);
}

static const char *scalar_text(struct arena *arena, const struct json_node *node)
{
    struct slice text = node->text;
    if (node->type == JSON_TYPE_NULL)
        return "";
    if (node->type == JSON_TYPE_BOOL)
        return node->truth ? "true" : "false";
    if (node->type == JSON_TYPE_STRING && json_node_text(node, arena, &text) != ST_OK)
        return NULL;
    return text_dup(arena, text);
}

/* The items of a list with commas between them; NULL: out of memory, or not a value of a flag. */
static const char *value_text(struct arena *arena, const struct json_node *node)
{
    const char *text = "";
    if (node->type == JSON_TYPE_OBJECT)
        return NULL;
    if (node->type != JSON_TYPE_ARRAY)
        return scalar_text(arena, node);
    for (const struct json_node *item = node->first; item && text; item = item->next) {
        if (item->type == JSON_TYPE_OBJECT || item->type == JSON_TYPE_ARRAY)
            return NULL;
        const char *one = scalar_text(arena, item);
        if (one && *text)
            text = joined(arena, slice_from_text(text), ",");
        text = one && text ? joined(arena, slice_from_text(text), one) : NULL;
    }
    return text;
}

static enum status read_entry(struct arena *arena, const char *path, const struct profile *profile,
                              const struct json_node *node, struct profile_entry *ret_entry,
                              struct error *error)
{
    const char *value = value_text(arena, node), *name = text_dup(arena, node->key);
    if (arena_ran_out(arena))
        return no_memory(error);
    if (!value)
        return error_set(error, ST_INVALID, "%s: %s: the value of %s must be a text or a list",
                         path, profile->name, name);
    if (strlen(value) > 0 && is_path(node->key))
        value = full_path(arena, path, value);
    *ret_entry = (struct profile_entry){name, value, value && is_secret(node->key, value)};
    return value ? ST_OK : no_memory(error);
}

static enum status read_profile(struct arena *arena, const char *path, const struct json_node *node,
                                struct profile *ret_profile, struct error *error)
{
    struct profile profile = {.name = text_dup(arena, node->key)};
    if (node->type != JSON_TYPE_OBJECT && node->type != JSON_TYPE_NULL)
        return error_set(error, ST_INVALID,
                         "%s: %.*s must have flags below it, for instance \"endpoints: "
                         "https://127.0.0.1:2379\"",
                         path, (int)size_min(node->key.len, 64), (const char *)node->key.ptr);
    profile.entries = arena_calloc(arena, node->count + 1, sizeof(*profile.entries));
    if (!profile.entries || !profile.name)
        return no_memory(error);
    for (const struct json_node *m = node->first; m; m = m->next)
        TRY(read_entry(arena, path, &profile, m, &profile.entries[profile.count++], error));
    *ret_profile = profile;
    return ST_OK;
}

static enum status read_profiles(struct arena *arena, const struct json_node *root,
                                 struct profiles *profiles, struct error *error)
{
    if (root->type == JSON_TYPE_NULL)
        return ST_OK;
    if (root->type != JSON_TYPE_OBJECT)
        return error_set(error, ST_INVALID, "%s: a file of profiles begins with the name of one",
                         profiles->path);
    profiles->all = arena_calloc(arena, root->count, sizeof(*profiles->all));
    if (!profiles->all)
        return no_memory(error);
    for (const struct json_node *m = root->first; m; m = m->next)
        TRY(read_profile(arena, profiles->path, m, &profiles->all[profiles->count++], error));
    return ST_OK;
}

/* -- Secrets -- */

static const char *name_of_secret(const struct profiles *profiles)
{
    for (size_t i = 0; i < profiles->count; i++)
        for (size_t k = 0; k < profiles->all[i].count; k++)
            if (profiles->all[i].entries[k].secret)
                return profiles->all[i].entries[k].name;
    return NULL;
}

static enum status check_owner(const struct profiles *profiles, const struct stat *stat,
                               struct error *error)
{
    const char *secret = name_of_secret(profiles);
    if (secret && (stat->st_mode & 077))
        return error_set(error, ST_INVALID,
                         "%s contains a secret (%s), and others than its owner can read or change "
                         "it. Run: chmod 600 %s",
                         profiles->path, secret, profiles->path);
    if (secret && stat->st_uid != geteuid() && stat->st_uid != 0)
        return error_set(error, ST_INVALID, "%s contains a secret (%s) and belongs to another user",
                         profiles->path, secret);
    return ST_OK;
}

enum status profiles_read(struct arena *arena, const char *path, struct profiles *ret_profiles,
                          struct error *error)
{
    AUTO(close_file) int fd = -1;
    AUTO(buf_fini) struct buf text = {0};
    struct stat stat;
    struct json_node *root;
    struct error wrong = {0};
    struct profiles profiles = {.path = path};
    TRY(open_file(path, &fd, &stat, error));
    TRY(read_all(fd, path, &text, error));
    enum status status = yaml_tree_read(arena, buf_slice(&text), &root, &wrong);
    if (status != ST_OK)
        return error_set(error, status == ST_NOMEM ? ST_NOMEM : ST_INVALID, "%s: %s", path,
                         wrong.text[0] ? wrong.text : "it is too deep or too long");
    TRY(read_profiles(arena, root, &profiles, error));
    TRY(check_owner(&profiles, &stat, error));
    *ret_profiles = profiles;
    return ST_OK;
}

const struct profile *profiles_find(const struct profiles *profiles, const char *name)
{
    for (size_t i = 0; i < profiles->count; i++)
        if (strcmp(profiles->all[i].name, name) == 0)
            return &profiles->all[i];
    return NULL;
}

/* -- Applying -- */

static enum status apply_entry(const struct profiles *profiles, const struct profile *profile,
                               const struct profile_entry *entry, struct options *options,
                               struct error *error)
{
    struct error wrong = {0};
    struct slice name = slice_from_text(entry->name);
    const struct option *row = options_find(options->table, name);
    if (!row || strcmp(entry->name, "profile") == 0) {
        const char *nearest = options_nearest(options->table, name);
        return error_set(error, ST_INVALID, "%s: %s: there is no flag --%.64s%s%s", profiles->path,
                         profile->name, entry->name, nearest ? "; did you mean " : "",
                         nearest ? nearest : "");
    }
    if (options_source(options, row->name) != OPTION_FROM_DEFAULT)
        return ST_OK;
    if (options_set(options, entry->name, entry->value, OPTION_FROM_FILE, &wrong) != ST_OK)
        return error_set(error, ST_INVALID, "%s: %s: %s", profiles->path, profile->name,
                         wrong.text);
    return ST_OK;
}

static enum status unknown_profile(const struct profiles *profiles, const char *name,
                                   struct error *error)
{
    char known[256] = "";
    size_t len = 0;
    for (size_t i = 0; i < profiles->count && len < sizeof(known); i++)
        len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s", i ? ", " : "",
                                profiles->all[i].name);
    return error_set(error, ST_NOT_FOUND, "there is no profile \"%.64s\" in %s, which has: %s",
                     name, profiles->path, known[0] ? known : "none");
}

enum status profile_apply(struct arena *arena, const char *name, struct options *options,
                          struct error *error)
{
    struct profiles profiles;
    const char *path = profiles_path(arena);
    if (!path)
        return error_set(error, ST_NOT_FOUND, "--profile needs HOME or VIGIL_PROFILES");
    enum status status = profiles_read(arena, path, &profiles, error);
    if (status == ST_NOT_FOUND)
        return error_set(error, ST_NOT_FOUND,
                         "the profile \"%.64s\" cannot be read, because %s does not exist", name,
                         path);
    TRY(status);
    const struct profile *profile = profiles_find(&profiles, name);
    if (!profile)
        return unknown_profile(&profiles, name, error);
    for (size_t i = 0; i < profile->count; i++)
        TRY(apply_entry(&profiles, profile, &profile->entries[i], options, error));
    return ST_OK;
}
