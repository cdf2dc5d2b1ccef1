#include "kubeclient/connect/kubeconfig.h"

#include "codec/base64.h"
#include "io/whole_file.h"
#include "yaml/yaml.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

/* One file while it is read. */
struct source {
    const char *path;
    const struct json_node *root;
};

struct reading {
    struct kubeconfig *config;
    struct error *error;
    struct source sources[KUBECONFIG_FILES_MAX];
    size_t count;
    const char *path; /* the file that is being read */
};

void kubeconfig_fini(struct kubeconfig *config)
{
    arena_fini(&config->arena);
}

/* -- Values -- */

static enum status copy_text(struct reading *r, struct slice text, const char **ret_text)
{
    char *copy = arena_alloc(&r->config->arena, text.len + 1);
    if (!copy)
        return error_no_memory(r->error);
    slice_copy((uint8_t *)copy, text);
    copy[text.len] = 0;
    *ret_text = copy;
    return ST_OK;
}

static enum status join(struct reading *r, const char **ret_text, const char *const *parts)
{
    size_t bytes = 1;
    for (const char *const *part = parts; *part; part++)
        bytes += strlen(*part);
    char *text = arena_alloc(&r->config->arena, bytes), *end = text;
    if (!text)
        return error_no_memory(r->error);
    for (const char *const *part = parts; *part; part++)
        end = stpcpy(end, *part);
    *ret_text = text;
    return ST_OK;
}
#define JOIN(r, ret_text, ...) join(r, ret_text, (const char *const[]){__VA_ARGS__, NULL})

/* The text of a member; NULL if it is absent or empty. */
static enum status get_text(struct reading *r, const struct json_node *object, const char *key,
                            const char **ret_text)
{
    struct slice text;
    const struct json_node *node = json_look_member(object, slice_from_text(key));
    *ret_text = NULL;
    if (!node || node->type == JSON_TYPE_NULL)
        return ST_OK;
    if (node->type != JSON_TYPE_STRING)
        return error_set(r->error, ST_MALFORMED, "%s: \"%s\" must be a string", r->path, key);
    if (json_node_text(node, &r->config->arena, &text) != ST_OK)
        return error_no_memory(r->error);
    if (text.len && memchr(text.ptr, 0, text.len))
        return error_set(r->error, ST_MALFORMED, "%s: \"%s\" contains a zero byte", r->path, key);
    return text.len ? copy_text(r, text, ret_text) : ST_OK;
}

static bool get_bool(const struct json_node *object, const char *key)
{
    const struct json_node *node = json_look_member(object, slice_from_text(key));
    return node && node->type == JSON_TYPE_BOOL && node->truth;
}

static enum status resolve(struct reading *r, const char **path)
{
    const char *directory, *slash = strrchr(r->path, '/');
    /* Relative paths are relative to the file that contains them, not to the working directory. */
    if ((*path)[0] == '/' || !slash)
        return ST_OK;
    TRY(copy_text(r, slice_of(r->path, (size_t)(slash - r->path) + 1), &directory));
    return JOIN(r, path, directory, *path);
}

/* A path that is relative to the directory of its file. */
static enum status get_path(struct reading *r, const struct json_node *object, const char *key,
                            const char **ret_path)
{
    TRY(get_text(r, object, key, ret_path));
    return *ret_path ? resolve(r, ret_path) : ST_OK;
}

static enum status get_data(struct reading *r, const struct json_node *object, const char *key,
                            struct slice *ret_data)
{
    const char *text;
    size_t len;
    TRY(get_text(r, object, key, &text));
    *ret_data = SLICE_EMPTY;
    if (!text)
        return ST_OK;
    uint8_t *bytes = arena_alloc(&r->config->arena, strlen(text) / 4 * 3 + 3);
    if (!bytes)
        return error_no_memory(r->error);
    if (!base64_decode(slice_from_text(text), bytes, &len))
        return error_set(r->error, ST_MALFORMED, "%s: \"%s\" is not base64", r->path, key);
    *ret_data = slice_of(bytes, len);
    return ST_OK;
}

static enum status get_pem(struct reading *r, const struct json_node *object, const char *file_key,
                           const char *data_key, struct kubeconfig_pem *ret_pem)
{
    TRY(get_path(r, object, file_key, &ret_pem->file));
    return get_data(r, object, data_key, &ret_pem->data);
}

static size_t count_items(const struct json_node *array)
{
    return array && array->type == JSON_TYPE_ARRAY ? array->count : 0;
}

static enum status get_item(struct reading *r, const struct json_node *item, const char *key,
                            const char **ret_text)
{
    struct slice text;
    if (json_node_text(item, &r->config->arena, &text) != ST_OK)
        return error_no_memory(r->error);
    if (item->type != JSON_TYPE_STRING || (text.len && memchr(text.ptr, 0, text.len)))
        return error_set(r->error, ST_MALFORMED,
                         "%s: \"%.80s\" must be a list of strings without zero bytes", r->path,
                         key);
    return copy_text(r, text, ret_text);
}

/* A list of strings, which ends with NULL. */
static enum status get_texts(struct reading *r, const struct json_node *object, const char *key,
                             const char *const **ret_texts)
{
    const struct json_node *items = json_look_member(object, slice_from_text(key));
    size_t count = count_items(items), at = 0;
    const char **list = arena_calloc(&r->config->arena, count + 1, sizeof(*list));
    if (!list)
        return error_no_memory(r->error);
    for (const struct json_node *item = count ? items->first : NULL; item; item = item->next)
        TRY(get_item(r, item, key, &list[at++]));
    *ret_texts = list;
    return ST_OK;
}

/* -- Named entries -- */

/* The entry of a list such as "clusters" in the first file that has it; its path is noted. NULL:
 * there is none. */
static const struct json_node *find_entry(struct reading *r, const char *list, const char *name,
                                          const char *member)
{
    /* As in kubectl, the first file of KUBECONFIG that has an entry wins. */
    for (size_t i = 0; i < r->count; i++) {
        const struct json_node *entries =
            json_look_member(r->sources[i].root, slice_from_text(list));
        const struct json_node *entry =
            entries && entries->type == JSON_TYPE_ARRAY ? entries->first : NULL;
        for (; entry; entry = entry->next) {
            struct slice text;
            const struct json_node *own = json_look_member(entry, SLICE_LITERAL("name"));
            if (!own || json_node_text(own, &r->config->arena, &text) != ST_OK ||
                !slice_equal(text, slice_from_text(name)))
                continue;
            r->path = r->sources[i].path;
            return json_look_member(entry, slice_from_text(member));
        }
    }
    return NULL;
}

/* What the cluster has for exec plugins only. */
static enum status read_plugin_extension(struct reading *r, const struct json_node *cluster)
{
    AUTO(buf_fini) struct buf json = {0};
    const struct json_node *list = json_look_member(cluster, SLICE_LITERAL("extensions"));
    const struct json_node *item = count_items(list) ? list->first : NULL, *extension;
    while (item && !json_node_is_text(json_look_member(item, SLICE_LITERAL("name")),
                                      "client.authentication.k8s.io/exec"))
        item = item->next;
    if (!item || !(extension = json_look_member(item, SLICE_LITERAL("extension"))))
        return ST_OK;
    if (json_tree_write(extension, &json) != ST_OK ||
        arena_dup(&r->config->arena, buf_slice(&json), &r->config->exec.cluster_config) != ST_OK)
        return error_no_memory(r->error);
    return ST_OK;
}

static enum status read_cluster(struct reading *r, const char *name)
{
    struct kubeconfig *c = r->config;
    const struct json_node *cluster = find_entry(r, "clusters", name, "cluster");
    if (!cluster)
        return error_set(r->error, ST_NOT_FOUND, "%s: there is no cluster \"%.80s\"", r->path,
                         name);
    TRY(get_text(r, cluster, "server", &c->server));
    if (!c->server)
        return error_set(r->error, ST_MALFORMED, "%s: cluster \"%.80s\" has no server", r->path,
                         name);
    TRY(get_pem(r, cluster, "certificate-authority", "certificate-authority-data", &c->ca));
    TRY(get_text(r, cluster, "tls-server-name", &c->tls_server_name));
    TRY(get_text(r, cluster, "proxy-url", &c->proxy_url));
    c->insecure_skip_verify = get_bool(cluster, "insecure-skip-tls-verify");
    c->disable_compression = get_bool(cluster, "disable-compression");
    return read_plugin_extension(r, cluster);
}

static enum status read_env(struct reading *r, const struct json_node *exec)
{
    const struct json_node *env = json_look_member(exec, SLICE_LITERAL("env"));
    size_t count = count_items(env), at = 0;
    const char **list = arena_calloc(&r->config->arena, count + 1, sizeof(*list));
    if (!list)
        return error_no_memory(r->error);
    for (const struct json_node *item = count ? env->first : NULL; item; item = item->next) {
        const char *name, *value;
        TRY(get_text(r, item, "name", &name));
        TRY(get_text(r, item, "value", &value));
        if (!name)
            return error_set(r->error, ST_MALFORMED, "%s: a variable of exec has no name", r->path);
        TRY(JOIN(r, &list[at++], name, "=", value ? value : ""));
    }
    r->config->exec.env = list;
    return ST_OK;
}

/* This client has no terminal to offer. */
static enum status check_interaction(struct reading *r, const struct json_node *exec)
{
    const char *mode;
    TRY(get_text(r, exec, "interactiveMode", &mode));
    if (!mode || strcmp(mode, "Never") == 0 || strcmp(mode, "IfAvailable") == 0)
        return ST_OK;
    if (strcmp(mode, "Always") == 0)
        return error_set(r->error, ST_UNIMPLEMENTED,
                         "%s: the exec plugin %.80s needs a terminal (interactiveMode: Always), "
                         "which it cannot have here",
                         r->path, r->config->exec.command);
    return error_set(r->error, ST_MALFORMED, "%s: unknown interactiveMode \"%.80s\"", r->path,
                     mode);
}

static enum status read_exec(struct reading *r, const struct json_node *exec)
{
    struct kubeconfig_exec *e = &r->config->exec;
    if (!exec || exec->type != JSON_TYPE_OBJECT)
        return ST_OK;
    TRY(get_text(r, exec, "command", &e->command));
    TRY(get_text(r, exec, "apiVersion", &e->api_version));
    TRY(get_text(r, exec, "installHint", &e->install_hint));
    if (!e->command || !e->api_version)
        return error_set(r->error, ST_MALFORMED, "%s: exec needs a command and an apiVersion",
                         r->path);
    if (strchr(e->command, '/')) /* others are searched for in PATH */
        TRY(resolve(r, &e->command));
    e->wants_cluster_info = get_bool(exec, "provideClusterInfo");
    TRY(check_interaction(r, exec));
    TRY(get_texts(r, exec, "args", &e->args));
    return read_env(r, exec);
}

/* "as-user-extra" maps each key to a list of values. */
static enum status read_extra(struct reading *r, const struct json_node *user)
{
    const struct json_node *map = json_look_member(user, SLICE_LITERAL("as-user-extra"));
    const struct json_node *key = map && map->type == JSON_TYPE_OBJECT ? map->first : NULL;
    struct kubeconfig_impersonation *to = &r->config->impersonate;
    size_t count = 0;
    for (const struct json_node *item = key; item; item = item->next)
        count += count_items(item);
    struct kubeconfig_extra *list = arena_calloc(&r->config->arena, count + 1, sizeof(*list));
    if (!list)
        return error_no_memory(r->error);
    for (; key; key = key->next) {
        const char *text;
        if (key->key.len && memchr(key->key.ptr, 0, key->key.len))
            return error_set(r->error, ST_MALFORMED,
                             "%s: a key of \"as-user-extra\" contains a "
                             "zero byte",
                             r->path);
        TRY(copy_text(r, key->key, &text));
        const struct json_node *value = count_items(key) ? key->first : NULL;
        for (; value; value = value->next) {
            struct kubeconfig_extra *extra = &list[to->extra_count++];
            extra->key = text;
            TRY(get_item(r, value, text, &extra->value));
        }
    }
    to->extra = list;
    return ST_OK;
}

const char *kubeconfig_credential(const struct kubeconfig *c)
{
    if (c->token || c->token_file)
        return "a token";
    if (c->user || c->password)
        return "a user and password";
    if (c->exec.command)
        return "the credentials of an exec plugin";
    return kubeconfig_has_pem(&c->cert) || kubeconfig_has_pem(&c->key) ? "a client certificate"
                                                                       : NULL;
}

/* They could be read on the way to the server. */
static void drop_credentials_without_tls(struct kubeconfig *c)
{
    static const char secure[] = "https://";
    if (strncasecmp(c->server, secure, sizeof(secure) - 1) == 0)
        return;
    c->cert = c->key = (struct kubeconfig_pem){0};
    c->token = c->token_file = c->user = c->password = NULL;
    c->exec = (struct kubeconfig_exec){0};
    assert(!kubeconfig_credential(c));
}

static enum status read_user(struct reading *r, const char *name)
{
    struct kubeconfig *c = r->config;
    const struct json_node *user = find_entry(r, "users", name, "user");
    if (!user)
        return error_set(r->error, ST_NOT_FOUND, "%s: there is no user \"%.80s\"", r->path, name);
    if (json_look_member(user, SLICE_LITERAL("auth-provider")))
        return error_set(r->error, ST_UNIMPLEMENTED,
                         "%s: user \"%.80s\" has an auth-provider, which Kubernetes has removed: "
                         "use exec",
                         r->path, name);
    TRY(get_pem(r, user, "client-certificate", "client-certificate-data", &c->cert));
    TRY(get_pem(r, user, "client-key", "client-key-data", &c->key));
    TRY(get_text(r, user, "token", &c->token));
    TRY(get_path(r, user, "tokenFile", &c->token_file));
    TRY(get_text(r, user, "username", &c->user));
    TRY(get_text(r, user, "password", &c->password));
    struct kubeconfig_impersonation *to = &r->config->impersonate;
    TRY(get_text(r, user, "as", &to->user));
    TRY(get_text(r, user, "as-uid", &to->uid));
    TRY(get_texts(r, user, "as-groups", &to->groups));
    TRY(read_extra(r, user));
    if (!to->user && (to->uid || to->groups[0] || to->extra_count))
        return error_set(
            r->error, ST_MALFORMED,
            "%s: user \"%.80s\" has as-uid, as-groups or as-user-extra, but not \"as\"", r->path,
            name);
    TRY(read_exec(r, json_look_member(user, SLICE_LITERAL("exec"))));
    if ((c->token || c->token_file) && (c->user || c->password))
        return error_set(r->error, ST_MALFORMED,
                         "%s: user \"%.80s\" has both a token and a username or password", r->path,
                         name);
    if (kubeconfig_has_pem(&c->cert) && !kubeconfig_has_pem(&c->key))
        return error_set(r->error, ST_MALFORMED,
                         "%s: user \"%.80s\" has a client certificate without a client key",
                         r->path, name);
    return ST_OK;
}

/* -- The context -- */

static enum status current_context(struct reading *r, const char **ret_context)
{
    for (size_t i = 0; i < r->count; i++) {
        r->path = r->sources[i].path;
        TRY(get_text(r, r->sources[i].root, "current-context", ret_context));
        if (*ret_context)
            return ST_OK;
    }
    return error_set(r->error, ST_NOT_FOUND,
                     "%s: there is no current-context: choose a context, or set one with \"kubectl "
                     "config use-context\"",
                     r->sources[0].path);
}

static enum status read_context(struct reading *r, const char *name)
{
    const char *cluster, *user;
    if (!name)
        TRY(current_context(r, &name));
    TRY(copy_text(r, slice_from_text(name), &r->config->context));
    const struct json_node *context = find_entry(r, "contexts", name, "context");
    if (!context)
        return error_set(r->error, ST_NOT_FOUND, "%s: there is no context \"%.80s\"", r->path,
                         name);
    TRY(get_text(r, context, "cluster", &cluster));
    TRY(get_text(r, context, "user", &user));
    TRY(get_text(r, context, "namespace", &r->config->name_space));
    if (!cluster)
        return error_set(r->error, ST_MALFORMED, "%s: context \"%.80s\" has no cluster", r->path,
                         name);
    TRY(read_cluster(r, cluster));
    if (user)
        TRY(read_user(r, user));
    drop_credentials_without_tls(r->config);
    return ST_OK;
}

/* -- Files -- */

static enum status parse(struct reading *r, const struct kubeconfig_file *file)
{
    struct error why = {0};
    struct json_node *root;
    struct source *source = &r->sources[r->count];
    TRY(copy_text(r, slice_from_text(file->path), &source->path));
    if (file->text.len > KUBECONFIG_BYTES_MAX)
        return error_set(r->error, ST_LIMIT, "%s: longer than %d bytes", file->path,
                         KUBECONFIG_BYTES_MAX);
    enum status status = yaml_tree_read(&r->config->arena, file->text, &root, &why);
    if (status == ST_NOMEM)
        return error_no_memory(r->error);
    if (status != ST_OK)
        return error_set(r->error, ST_MALFORMED, "%s: %s", file->path,
                         why.text[0] ? why.text : status_text(status));
    if (root->type != JSON_TYPE_OBJECT)
        return error_set(r->error, ST_MALFORMED, "%s: not a kubeconfig file", file->path);
    source->root = root;
    r->count++;
    return ST_OK;
}

static enum status read_all(struct reading *r, const struct kubeconfig_file *files, size_t count,
                            const char *context)
{
    if (count == 0 || count > KUBECONFIG_FILES_MAX)
        return error_set(r->error, ST_INVALID, "between 1 and %d kubeconfig files can be used",
                         KUBECONFIG_FILES_MAX);
    for (size_t i = 0; i < count; i++)
        TRY(parse(r, &files[i]));
    r->path = r->sources[0].path;
    return read_context(r, context);
}

enum status kubeconfig_read(const struct kubeconfig_file *files, size_t count, const char *context,
                            struct kubeconfig *ret_config, struct error *error)
{
    struct kubeconfig config = {0};
    struct reading r = {.config = &config, .error = error};
    arena_init(&config.arena, NULL, 0, KUBECONFIG_ARENA_BYTES_MAX);
    enum status status = read_all(&r, files, count, context);
    if (arena_ran_out(&config.arena))
        status = error_no_memory(error);
    if (status == ST_OK)
        *ret_config = config;
    else
        kubeconfig_fini(&config);
    return status;
}

/* The files of a list while they are read. */
struct file_list {
    char *paths; /* a copy that is cut at the colons */
    struct kubeconfig_file files[KUBECONFIG_FILES_MAX];
    struct buf texts[KUBECONFIG_FILES_MAX];
    size_t count;
};

static enum status file_list_read(struct file_list *list, const char *paths, struct error *error)
{
    bool alone = !strchr(paths, ':');
    list->paths = strdup(paths);
    if (!list->paths)
        return error_no_memory(error);
    char *rest = list->paths, *path;
    while ((path = strsep(&rest, ":")) != NULL) {
        if (!*path)
            continue;
        if (list->count == KUBECONFIG_FILES_MAX)
            return error_set(error, ST_LIMIT, "more than %d kubeconfig files",
                             KUBECONFIG_FILES_MAX);
        enum status status = whole_file_read(path, WHOLE_FILE_ANY, KUBECONFIG_BYTES_MAX,
                                             &list->texts[list->count], error);
        if (status == ST_NOT_FOUND && !alone)
            continue;
        TRY(status);
        list->files[list->count] =
            (struct kubeconfig_file){path, buf_slice(&list->texts[list->count])};
        list->count++;
    }
    if (list->count == 0)
        return error_set(error, ST_NOT_FOUND, "none of the kubeconfig files exists: %.300s", paths);
    return ST_OK;
}

enum status kubeconfig_load(const char *paths, const char *context, struct kubeconfig *ret_config,
                            struct error *error)
{
    struct file_list *list = calloc(1, sizeof(*list));
    if (!list)
        return error_no_memory(error);
    enum status status = file_list_read(list, paths, error);
    if (status == ST_OK)
        status = kubeconfig_read(list->files, list->count, context, ret_config, error);
    for (size_t i = 0; i < KUBECONFIG_FILES_MAX; i++)
        buf_fini(&list->texts[i]);
    free(list->paths);
    free(list);
    return status;
}

/* -- All users -- */

/* The name of the user of the current context; NULL: there is no such context, or it has none. */
static enum status read_current_user(struct reading *r, const char **ret_name)
{
    const char *context;
    *ret_name = NULL;
    TRY(get_text(r, r->sources[0].root, "current-context", &context));
    const struct json_node *entry = context ? find_entry(r, "contexts", context, "context") : NULL;
    return entry ? get_text(r, entry, "user", ret_name) : ST_OK;
}

static enum status read_users(struct reading *r, struct kubeconfig_users *users)
{
    const struct json_node *list = json_look_member(r->sources[0].root, SLICE_LITERAL("users"));
    size_t count = count_items(list);
    r->path = r->sources[0].path;
    if (count > KUBECONFIG_USERS_MAX)
        return error_set(r->error, ST_LIMIT, "%s: more than %d users", r->path,
                         KUBECONFIG_USERS_MAX);
    users->items = arena_calloc(&r->config->arena, count + 1, sizeof(*users->items));
    if (!users->items)
        return error_no_memory(r->error);
    for (const struct json_node *entry = count ? list->first : NULL; entry; entry = entry->next) {
        struct kubeconfig_user *user = &users->items[users->count];
        TRY(get_text(r, entry, "name", &user->name));
        if (!user->name)
            return error_set(r->error, ST_MALFORMED, "%s: a user has no name", r->path);
        TRY(read_user(r, user->name));
        /* What was read goes to the user; the arena stays. */
        user->config = *r->config;
        user->config.arena = (struct arena){0};
        *r->config = (struct kubeconfig){.arena = r->config->arena};
        users->count++;
    }
    return read_current_user(r, &users->current);
}

enum status kubeconfig_users_load(const char *path, struct kubeconfig_users *ret_users,
                                  struct error *error)
{
    AUTO(buf_fini) struct buf text = {0};
    struct kubeconfig config = {0};
    struct kubeconfig_users users = {0};
    struct reading r = {.config = &config, .error = error};
    TRY(whole_file_read(path, WHOLE_FILE_ANY, KUBECONFIG_BYTES_MAX, &text, error));
    arena_init(&config.arena, NULL, 0, KUBECONFIG_ARENA_BYTES_MAX);
    enum status status = parse(&r, &(struct kubeconfig_file){path, buf_slice(&text)});
    if (status == ST_OK)
        status = read_users(&r, &users);
    if (arena_ran_out(&config.arena))
        status = error_no_memory(error);
    if (status == ST_OK) {
        *ret_users = users;
        ret_users->arena = config.arena;
    } else {
        kubeconfig_fini(&config);
    }
    return status;
}

void kubeconfig_users_fini(struct kubeconfig_users *users)
{
    arena_fini(&users->arena);
}

/* -- In a pod -- */

static enum status read_account(struct reading *r, const char *host, const char *port,
                                const char *directory)
{
    struct kubeconfig *c = r->config;
    bool brackets = strchr(host, ':'); /* an address of IPv6 */
    TRY(JOIN(r, &c->server, "https://", brackets ? "[" : "", host, brackets ? "]:" : ":", port));
    TRY(JOIN(r, &c->token_file, directory, "/token"));
    TRY(JOIN(r, &c->ca.file, directory, "/ca.crt"));
    if (access(c->token_file, R_OK) != 0)
        return error_set(r->error, errno == ENOENT ? ST_NOT_FOUND : ST_IO, "%s: %s", c->token_file,
                         strerror(errno));
    /* Without the file, the namespace is not given. */
    const char *path;
    AUTO(buf_fini) struct buf text = {0};
    TRY(JOIN(r, &path, directory, "/namespace"));
    enum status status =
        whole_file_read(path, WHOLE_FILE_REGULAR, KUBECONFIG_BYTES_MAX, &text, r->error);
    if (status == ST_NOT_FOUND)
        return ST_OK;
    TRY(status);
    struct slice name = buf_slice(&text);
    while (name.len && strchr(" \t\r\n", name.ptr[name.len - 1]))
        name.len--;
    return name.len ? copy_text(r, name, &r->config->name_space) : ST_OK;
}

enum status kubeconfig_in_cluster(const char *host, const char *port, const char *directory,
                                  struct kubeconfig *ret_config, struct error *error)
{
    struct kubeconfig config = {0};
    struct reading r = {.config = &config, .error = error};
    if (!host || !*host || !port || !*port)
        return error_set(error, ST_NOT_FOUND,
                         "this is not a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT "
                         "are not set");
    arena_init(&config.arena, NULL, 0, KUBECONFIG_ARENA_BYTES_MAX);
    enum status status = read_account(&r, host, port, directory);
    if (status == ST_OK)
        *ret_config = config;
    else
        kubeconfig_fini(&config);
    return status;
}
