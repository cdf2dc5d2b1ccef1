#include "cmd/names/apiserver.h"

#include "base/options/value.h"
#include "base/version.h"
#include "base/xalloc.h"
#include "cmd/names/apiserver_ignored.h"
#include "cmd/serve/serve.h"
#include "kube/policy/admission/admission.h"
#include "kube/server/meta_routes.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_OK = 0, EXIT_FAILED = 1, ARENA_BYTES_MAX = 1 << 20, REMOVE_FILES_OPEN = 8 };

#define CERT_DIR_DEFAULT "/var/run/kubernetes"
#define BIND_ADDRESS_DEFAULT "0.0.0.0"
#define SECURE_PORT_DEFAULT "6443"
#define ETCD_PREFIX "/registry"
#define TLS_VERSION_PREFIX "VersionTLS1"

/* Flags whose value is passed on as it is. */
static const struct renamed {
    const char *flag, *ours;
} renamed[] = {
    {"admission-control-config-file", "kube-admission-control-config-file"},
    {"advertise-address", "kube-advertise-address"},
    {"api-audiences", "kube-api-audiences"},
    {"client-ca-file", "kube-client-ca-file"},
    {"disable-admission-plugins", "kube-disable-admission-plugins"},
    {"etcd-cafile", "upstream-cacert"},
    {"etcd-certfile", "upstream-cert"},
    {"etcd-compaction-interval", "kube-history"},
    {"etcd-keyfile", "upstream-key"},
    {"etcd-servers", "upstream-endpoints"},
    {"http2-max-streams-per-connection", "max-concurrent-streams"},
    {"service-account-issuer", "kube-service-account-issuer"},
    {"service-account-key-file", "kube-service-account-key-file"},
    {"service-account-signing-key-file", "kube-service-account-signing-key-file"},
    {"service-cluster-ip-range", "kube-service-cluster-ip-range"},
    {"service-node-port-range", "kube-service-node-port-range"},
    {"tls-cert-file", "cert-file"},
    {"tls-cipher-suites", "cipher-suites"},
    {"tls-private-key-file", "key-file"},
    {"token-auth-file", "kube-token-file"},
};

/* Flags that the functions below translate. */
static const char *const translated[] = {
    APISERVER_ACCEPT_IGNORED,
    "allow-privileged",
    "authorization-mode",
    "bind-address",
    "cert-dir",
    "enable-admission-plugins",
    "etcd-prefix",
    "help",
    "secure-port",
    "tls-min-version",
    "version",
};

/* -- Values -- */

static const char *get_or(const struct apiserver_flags *flags, const char *name,
                          const char *fallback)
{
    const char *value = apiserver_flags_get(flags, name);
    return value ? value : fallback;
}

PRINTF_LIKE(2, 3)
static char *format(struct arena *arena, const char *text, ...)
{
    va_list values;
    va_start(values, text);
    int len = vsnprintf(NULL, 0, text, values);
    va_end(values);
    assert(len >= 0);
    char *made = xalloc_check(arena_alloc(arena, (size_t)len + 1), (size_t)len + 1);
    va_start(values, text);
    vsnprintf(made, (size_t)len + 1, text, values);
    va_end(values);
    return made;
}

static void add(struct apiserver_args *args, struct arena *arena, const char *flag,
                const char *value)
{
    assert(args->count < APISERVER_ARGS_MAX);
    args->args[args->count++] = format(arena, "--%s=%s", flag, value);
}

/* -- Translation -- */

bool apiserver_has_effect(const char *flag)
{
    for (size_t i = 0; i < COUNT_OF(renamed); i++)
        if (strcmp(renamed[i].flag, flag) == 0)
            return true;
    for (size_t i = 0; i < COUNT_OF(translated); i++)
        if (strcmp(translated[i], flag) == 0)
            return true;
    return false;
}

/* -- Flags without effect -- */

static void append(const char **list, struct arena *arena, const char *item)
{
    *list = format(arena, "%s%s%s", *list, **list ? "," : "", item);
}

/* For the value of a flag that was parsed as a boolean. */
static bool is_true(const char *value)
{
    return value[0] && strchr("1tT", value[0]);
}

/* Notes a flag that has no effect; why: what its user would rely on, or NULL. */
static enum status ignore(const struct apiserver_flags *flags, struct arena *arena,
                          struct apiserver_args *args, const char *what, const char *why,
                          struct error *error)
{
    if (!why) {
        append(&args->without_effect, arena, what);
        return ST_OK;
    }
    if (!is_true(get_or(flags, APISERVER_ACCEPT_IGNORED, "false")))
        return error_set(error, ST_INVALID,
                         "--%.200s has no effect in Vigil: %s. Remove it, or add "
                         "--" APISERVER_ACCEPT_IGNORED
                         " to start without the effect of this flag and of others like it",
                         what, why);
    append(&args->not_enforced, arena, what);
    return ST_OK;
}

static enum status ignore_flags(const struct apiserver_flags *flags, struct arena *arena,
                                struct apiserver_args *args, struct error *error)
{
    const struct apiserver_flag *flag;
    for (size_t i = 0; (flag = apiserver_flag_at(i)); i++) {
        const char *value = flags->values[i];
        const struct apiserver_ignored *row = apiserver_ignored_flag(flag->name);
        if (!value || apiserver_has_effect(flag->name))
            continue;
        bool same = row && row->same && is_true(row->same) == is_true(value);
        const char *why = row ? row->why : "it is not known here";
        TRY(ignore(flags, arena, args, flag->name, same || !*value ? NULL : why, error));
    }
    return ST_OK;
}

static enum status check_port(const char *text, struct error *error)
{
    char *end;
    errno = 0;
    long port = strtol(text, &end, 10);
    if (!*text || *end || errno)
        return error_set(error, ST_INVALID,
                         "invalid argument \"%.100s\" for \"--secure-port\" flag: "
                         "strconv.ParseInt: parsing \"%.100s\": invalid syntax",
                         text, text);
    if (port < 1 || port > UINT16_MAX)
        return error_set(error, ST_INVALID,
                         "--secure-port %ld must be between 1 and 65535, inclusive. It cannot be "
                         "turned off with 0",
                         port);
    return ST_OK;
}

static enum status add_address(const struct apiserver_flags *flags, struct arena *arena,
                               struct apiserver_args *args, struct error *error)
{
    const char *port = get_or(flags, "secure-port", SECURE_PORT_DEFAULT);
    const char *host = get_or(flags, "bind-address", BIND_ADDRESS_DEFAULT);
    bool is_v6 = strchr(host, ':');
    TRY(check_port(port, error));
    add(args, arena, "listen-kube-urls",
        format(arena, is_v6 ? "https://[%s]:%s" : "https://%s:%s", host, port));
    add(args, arena, "listen-client-urls", "");
    return ST_OK;
}

/* Without files of its own, the pair in --cert-dir; without that, a certificate is generated. */
static void add_serving_pair(const struct apiserver_flags *flags, struct arena *arena,
                             struct apiserver_args *args)
{
    if (apiserver_flags_get(flags, "tls-cert-file"))
        return;
    const char *dir = get_or(flags, "cert-dir", CERT_DIR_DEFAULT);
    const char *cert = format(arena, "%s/apiserver.crt", dir);
    const char *key = format(arena, "%s/apiserver.key", dir);
    if (access(cert, F_OK) != 0 && access(key, F_OK) != 0) {
        add(args, arena, "auto-tls", "true");
        return;
    }
    add(args, arena, "cert-file", cert);
    add(args, arena, "key-file", key);
}

/* VersionTLS12 is TLS1.2. Versions 1.0 and 1.1 are not offered. */
static enum status add_tls_version(const struct apiserver_flags *flags, struct arena *arena,
                                   struct apiserver_args *args, struct error *error)
{
    const char *version = get_or(flags, "tls-min-version", "");
    size_t prefix = strlen(TLS_VERSION_PREFIX);
    if (!*version)
        return ST_OK;
    if (strncmp(version, TLS_VERSION_PREFIX, prefix) != 0 || !version[prefix] ||
        version[prefix + 1] || !strchr("0123", version[prefix]))
        return error_set(error, ST_INVALID, "unknown tls version \"%.100s\"", version);
    add(args, arena, "tls-min-version", version[prefix] == '3' ? "TLS1.3" : "TLS1.2");
    return ST_OK;
}

static bool list_has(const char *list, const char *word)
{
    struct slice item;
    while (option_list_next(&list, &item))
        if (slice_is(item, word))
            return true;
    return false;
}

/* The same mode twice is a mistake. */
static enum status check_twice(const char *modes, struct error *error)
{
    struct slice one, other;
    for (const char *rest = modes; option_list_next(&rest, &one);)
        for (const char *later = rest; option_list_next(&later, &other);)
            if (slice_equal(one, other))
                return error_set(
                    error, ST_INVALID,
                    "--authorization-mode \"%.100s\" has mode specified more than once", modes);
    return ST_OK;
}

/* The first mode that allows a request decides, so AlwaysAllow makes the others irrelevant. */
static enum status add_authorization(const struct apiserver_flags *flags, struct arena *arena,
                                     struct apiserver_args *args, struct error *error)
{
    const char *modes = get_or(flags, "authorization-mode", "AlwaysAllow"), *all = "";
    struct slice item;
    TRY(check_twice(modes, error));
    for (const char *rest = modes; option_list_next(&rest, &item);)
        if (!slice_is(item, "AlwaysAllow") && !slice_is(item, "RBAC") && !slice_is(item, "Node"))
            return error_set(error, ST_INVALID,
                             "--authorization-mode %.*s is not supported by Vigil, which has "
                             "AlwaysAllow, Node and RBAC",
                             (int)size_min(item.len, 100), item.ptr);
    for (const char *rest = modes; option_list_next(&rest, &item);)
        all = *all ? format(arena, "%s,%.*s", all, SLICE_ARGS(item))
                   : format(arena, "%.*s", SLICE_ARGS(item));
    add(args, arena, "kube-authorization-mode",
        list_has(modes, "AlwaysAllow") ? "AlwaysAllow" : all);
    return ST_OK;
}

/* As in kube-apiserver, which would not know what is meant. */
static enum status check_plugins(const struct apiserver_flags *flags, struct error *error)
{
    const char *enabled = get_or(flags, "enable-admission-plugins", "");
    const char *rest = get_or(flags, "disable-admission-plugins", "");
    struct slice name, other;
    while (option_list_next(&rest, &name)) {
        if (!kube_admission_exists(name) && !kube_admission_absent(name))
            return error_set(error, ST_INVALID,
                             "disable-admission-plugins plugin \"%.*s\" is unknown",
                             (int)size_min(name.len, 100), (const char *)name.ptr);
        for (const char *at = enabled; option_list_next(&at, &other);)
            if (slice_equal(name, other))
                return error_set(error, ST_INVALID,
                                 "[%.*s] in enable-admission-plugins and "
                                 "disable-admission-plugins overlapped",
                                 SLICE_ARGS(name));
    }
    return ST_OK;
}

/* Kubernetes' defaults include those that rely on controllers. A plugin that Vigil does not have is
 * like a flag without effect. */
static enum status add_plugins(const struct apiserver_flags *flags, struct arena *arena,
                               struct apiserver_args *args, struct error *error)
{
    const char *rest = get_or(flags, "enable-admission-plugins", "");
    const char *enabled = "ServiceAccount,StorageObjectInUseProtection";
    struct slice name;
    TRY(check_plugins(flags, error));
    while (option_list_next(&rest, &name)) {
        const struct kube_admission_absent *absent = kube_admission_absent(name);
        const char *what = format(arena, "enable-admission-plugins=%.*s", SLICE_ARGS(name));
        if (kube_admission_exists(name))
            enabled = format(arena, "%s,%.*s", enabled, SLICE_ARGS(name));
        else if (!absent)
            return error_set(error, ST_INVALID,
                             "enable-admission-plugins plugin \"%.*s\" is unknown",
                             (int)size_min(name.len, 100), (const char *)name.ptr);
        else
            TRY(ignore(flags, arena, args, what, absent->why, error));
    }
    add(args, arena, "kube-enable-admission-plugins", enabled);
    return ST_OK;
}

static enum status check_etcd(const struct apiserver_flags *flags, struct error *error)
{
    const char *prefix = get_or(flags, "etcd-prefix", ETCD_PREFIX);
    if (!*get_or(flags, "etcd-servers", ""))
        return error_set(error, ST_INVALID, "--etcd-servers must be specified");
    if (strcmp(prefix, ETCD_PREFIX) != 0 && strcmp(prefix, ETCD_PREFIX "/") != 0)
        return error_set(error, ST_INVALID,
                         "--etcd-prefix %.200s: Vigil keeps objects below " ETCD_PREFIX, prefix);
    return ST_OK;
}

enum status apiserver_translate(const struct apiserver_flags *flags, struct arena *arena,
                                struct apiserver_args *ret_args, struct error *error)
{
    struct apiserver_args args = {.without_effect = "", .not_enforced = ""};
    TRY(check_etcd(flags, error));
    TRY(add_address(flags, arena, &args, error));
    TRY(add_tls_version(flags, arena, &args, error));
    TRY(add_authorization(flags, arena, &args, error));
    add(&args, arena, "kube-allow-privileged",
        is_true(get_or(flags, "allow-privileged", "false")) ? "true" : "false");
    /* Flux, Argo CD and kubectl's move to server-side applies rely on it. */
    add(&args, arena, "kube-managed-fields", "all");
    add_serving_pair(flags, arena, &args);
    for (size_t i = 0; i < COUNT_OF(renamed); i++) {
        const char *value = apiserver_flags_get(flags, renamed[i].flag);
        if (value && *value)
            add(&args, arena, renamed[i].ours, value);
    }
    TRY(ignore_flags(flags, arena, &args, error));
    TRY(add_plugins(flags, arena, &args, error));
    *ret_args = args;
    return ST_OK;
}

/* -- The mirror -- */

static bool make_below(const char *dir, char path[PATH_MAX])
{
    int len = snprintf(path, PATH_MAX, "%s/vigil-mirror-XXXXXX", dir);
    return len > 0 && len < PATH_MAX && mkdtemp(path);
}

static bool make_mirror(const struct apiserver_flags *flags, char path[PATH_MAX])
{
    const char *temporary = getenv("TMPDIR");
    return make_below(get_or(flags, "cert-dir", CERT_DIR_DEFAULT), path) ||
           make_below(temporary && *temporary ? temporary : "/tmp", path);
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *place)
{
    (void)about, (void)kind, (void)place;
    return remove(path);
}

/* -- The program -- */

static const char *find_ours(const char *flag)
{
    for (size_t i = 0; i < COUNT_OF(renamed); i++)
        if (strcmp(renamed[i].flag, flag) == 0)
            return renamed[i].ours;
    return NULL;
}

static void write_flag(const struct apiserver_flag *flag)
{
    static const char *const values[] = {
        [APISERVER_BOOL] = "",
        [APISERVER_OPTIONAL] = " value[=true]",
        [APISERVER_VALUE] = " value",
        [APISERVER_LIST] = " values",
    };
    char shown[128];
    const char *ours = find_ours(flag->name);
    const struct apiserver_ignored *row = apiserver_ignored_flag(flag->name);
    snprintf(shown, sizeof(shown), "--%s%s", flag->name, values[flag->kind]);
    if (ours)
        printf("      %-56s see vigil serve --%s\n", shown, ours);
    else if (strcmp(flag->name, APISERVER_ACCEPT_IGNORED) == 0)
        printf("      %-56s start with flags that would be refused, and warn\n", shown);
    else if (apiserver_has_effect(flag->name))
        printf("      %s\n", shown);
    else if (row && !row->why)
        printf("      %-56s accepted without effect\n", shown);
    else
        printf("      %-56s refused%s%s: %s\n", shown, row && row->same ? " except " : "",
               row && row->same ? row->same : "", row ? row->why : "it is not known here");
}

static int fail(const struct error *error)
{
    fprintf(stderr, "Error: %s\n", error->text);
    return EXIT_FAILED;
}

static int serve(const struct apiserver_flags *flags, struct arena *arena,
                 struct apiserver_args *args)
{
    struct error error;
    char mirror[PATH_MAX];
    if (!make_mirror(flags, mirror)) {
        (void)error_set(&error, ST_IO, "cannot create a directory for the mirror of the etcd: %s",
                        strerror(errno));
        return fail(&error);
    }
    add(args, arena, "data-dir", mirror);
    struct serve_how how = {SERVE_AS_APISERVER, args->without_effect, args->not_enforced};
    int code = serve_main(args->count, args->args, &how);
    (void)nftw(mirror, remove_one, REMOVE_FILES_OPEN, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    return code;
}

static int run(struct arena *arena, int count, char **args)
{
    struct error error;
    struct apiserver_flags flags;
    struct apiserver_args translation;
    if (apiserver_flags_parse(&flags, arena, count, args, &error) != ST_OK)
        return fail(&error);
    if (apiserver_flags_get(&flags, "help")) {
        const struct apiserver_flag *flag;
        printf("Vigil under the name of kube-apiserver: serves the Kubernetes API from an etcd.\n\n"
               "Usage:\n  kube-apiserver [flags]\n\nFlags:\n\n");
        for (size_t i = 0; (flag = apiserver_flag_at(i)); i++)
            write_flag(flag);
        return EXIT_OK;
    }
    if (apiserver_flags_get(&flags, "version")) {
        printf("Kubernetes v" KUBE_VERSION_MAJOR "." KUBE_VERSION_MINOR ".0-vigil." VIGIL_VERSION
               "\n");
        return EXIT_OK;
    }
    if (apiserver_translate(&flags, arena, &translation, &error) != ST_OK)
        return fail(&error);
    return serve(&flags, arena, &translation);
}

int apiserver_main(int count, char **args)
{
    struct arena arena;
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    int code = run(&arena, count, args);
    arena_fini(&arena);
    return code;
}
