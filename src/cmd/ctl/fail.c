/* How a command fails: texts and exit codes. */
#include "base/xalloc.h"
#include "cmd/ctl/decode/safe_text.h"
#include "cmd/ctl/decode/terminal.h"
#include "cmd/ctl/session.h"

#include <stdarg.h>

static const char *grpc_name(int code)
{
    static const char *const names[] = {
        "OK",
        "Canceled",
        "Unknown",
        "InvalidArgument",
        "DeadlineExceeded",
        "NotFound",
        "AlreadyExists",
        "PermissionDenied",
        "ResourceExhausted",
        "FailedPrecondition",
        "Aborted",
        "OutOfRange",
        "Unimplemented",
        "Internal",
        "Unavailable",
        "DataLoss",
        "Unauthenticated",
    };
    return code >= 0 && (size_t)code < COUNT_OF(names) ? names[code] : "Unknown";
}

static const char *format_text(struct ctl *ctl, const char *format, ...) PRINTF_LIKE(2, 3);

static const char *format_text(struct ctl *ctl, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    struct slice copy;
    if (arena_dup(ctl->arena, slice_of(text, strlen(text) + 1), &copy) != ST_OK)
        return "out of memory";
    return (const char *)copy.ptr;
}

/* What libvigil puts before an error of Authenticate. */
#define SIGN_IN "cannot authenticate: "

/* etcd's own errors are shown by their text, all others with the code of gRPC. */
static const char *etcdctl_text(struct ctl *ctl, const vigil_error *error)
{
    bool unanswered = error->grpc_code < 0;
    /* etcd's client library tries to connect until the time is up, whatever the reason of the
     * failures was. */
    if (unanswered &&
        (error->code == VIGIL_ERROR_TIMEOUT || error->code == VIGIL_ERROR_UNAVAILABLE))
        return "context deadline exceeded";
    const char *text = error->text;
    if (unanswered && error->code == VIGIL_ERROR_TOO_LARGE) /* gRPC for Go refuses it so */
        return format_text(ctl, "rpc error: code = ResourceExhausted desc = %s", text);
    if (strncmp(text, SIGN_IN, strlen(SIGN_IN)) == 0)
        text += strlen(SIGN_IN);
    if (unanswered || strncmp(text, "etcdserver: ", 12) == 0)
        return format_text(ctl, "%s", text);
    return ctl_rpc_error_text(ctl, error);
}

const char *ctl_rpc_error_text(struct ctl *ctl, const vigil_error *error)
{
    if (error->grpc_code < 0)
        return ctl_error_text(ctl, error);
    return format_text(ctl, "rpc error: code = %s desc = %s", grpc_name(error->grpc_code),
                       error->text);
}

/* Whether the endpoint that the text names is reached with TLS. */
static bool is_secure(const struct ctl *ctl, const char *text)
{
    const char *endpoints = ctl->globals.endpoints;
    struct slice item;
    while (option_list_next(&endpoints, &item)) {
        const uint8_t *scheme = memmem(item.ptr, item.len, "://", 3);
        size_t skip = scheme ? (size_t)(scheme - item.ptr) + 3 : 0;
        if (memmem(text, strlen(text), item.ptr + skip, item.len - skip))
            return scheme ? slice_has_prefix(item, SLICE_LITERAL("https")) : ctl_has_tls(ctl);
    }
    return ctl_has_tls(ctl);
}

/* A server was reached, but TLS or its absence has stopped the connection. NULL: that is not the
 * reason. */
static const char *tls_advice(const struct ctl *ctl, const char *text)
{
    static const struct {
        const char *phrase, *advice;
    } known[] = {
        {"unknown authority", "The server's certificate is signed by an authority that is not "
                              "known here: give the certificate of that authority with --cacert."},
        {"certificate required", "The server wants a certificate of the client: give --cert and "
                                 "--key."},
        {"bad certificate", "The server does not accept the certificate of the client: see --cert "
                            "and --key."},
        {"certificate is valid for", "The server's certificate is for other names: use one of "
                                     "them in --endpoints."},
        {"cannot validate certificate for", "The server's certificate is not for this address: "
                                            "use a name of the certificate in --endpoints."},
        {"certificate has expired", "The server's certificate must be renewed; see also the clock "
                                    "of this machine."},
    };
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (strstr(text, known[i].phrase))
            return known[i].advice;
    /* How a server ends a connection whose first bytes it does not understand. */
    static const char *const ends[] = {"the server closed the connection", ": EOF",
                                       "connection reset by peer", "wrong version number",
                                       "first record does not look like a TLS handshake"};
    if (!strstr(text, "cannot connect"))
        return NULL;
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        if (strstr(text, ends[i]))
            return is_secure(ctl, text) ? "The server is there, but may not use TLS: write its "
                                          "endpoint as http://, without --cacert, --cert and --key."
                                        : "The server is there, but may want TLS: write its "
                                          "endpoint as https://, and give --cacert.";
    return NULL;
}

/* What the user can do. */
static const char *advice(const struct ctl *ctl, const vigil_error *error)
{
    const char *tls;
    switch (error->code) {
    case VIGIL_ERROR_TIMEOUT:
    case VIGIL_ERROR_UNAVAILABLE:
        tls = tls_advice(ctl, error->text);
        return tls ? tls
                   : "Is the server running there? See --endpoints, --cacert and "
                     "--command-timeout.";
    case VIGIL_ERROR_UNAUTHENTICATED:
        return "Check --user and --password.";
    case VIGIL_ERROR_PERMISSION_DENIED:
        return "A role of the user must be granted this: see vigil role grant-permission.";
    case VIGIL_ERROR_COMPACTED:
        return "Older revisions are gone: choose a newer --rev, or none.";
    case VIGIL_ERROR_FUTURE_REVISION:
        return "This revision does not exist yet: choose an older --rev, or none.";
    case VIGIL_ERROR_NO_SPACE:
        return "Make room with vigil compaction and vigil defrag, then run vigil alarm disarm.";
    case VIGIL_ERROR_LEASE_NOT_FOUND:
        return "It has expired or was revoked: see vigil lease list.";
    case VIGIL_ERROR_TOO_LARGE:
        return "Use --limit, or raise --max-recv-bytes.";
    case VIGIL_ERROR_REQUEST_TOO_LARGE:
        return "Raise --max-request-bytes here and at the server, or store less in one key.";
    case VIGIL_ERROR_NO_LEADER:
        return "The cluster has lost its majority: see vigil endpoint status --cluster.";
    case VIGIL_ERROR_UNIMPLEMENTED:
        return "This server is too old for it, or does not offer it.";
    default:
        return "";
    }
}

const char *ctl_error_text(struct ctl *ctl, const vigil_error *error)
{
    if (ctl_is_etcdctl(ctl))
        return etcdctl_text(ctl, error);
    const char *hint = advice(ctl, error), *endpoints = ctl->globals.endpoints;
    bool is_named = strstr(error->text, endpoints);
    return format_text(ctl, "vigil %s: %s%s%.200s%s%s%s", ctl->command->path, error->text,
                       is_named ? "" : " (endpoints: ", is_named ? "" : endpoints,
                       is_named ? "" : ")", *hint ? "\n" : "", hint);
}

/* The first of these phrases that the text contains; its end is ret_end. */
static const char *find_phrase(const char *text, const char **ret_end, const char **ret_plain)
{
    static const struct {
        const char *begin, *end, *plain;
    } phrases[] = {
        {"strconv.ParseBool: ", "invalid syntax", "it is neither true nor false"},
        {"strconv.Parse", "invalid syntax", "it is not a number"},
        {"strconv.Parse", "value out of range", "it is too large"},
        {"time: ", "\"", "a time is a number with its unit, such as 500ms, 5s or 1m"},
    };
    for (size_t i = 0; i < COUNT_OF(phrases); i++) {
        const char *begin = strstr(text, phrases[i].begin);
        const char *end = begin ? strstr(begin, phrases[i].end) : NULL;
        if (end && *phrases[i].end == '"')
            end = end + strlen(end) - 1; /* the value, which may contain quotes, is the last */
        if (end) {
            *ret_end = end + strlen(phrases[i].end);
            *ret_plain = phrases[i].plain;
            return begin;
        }
    }
    return NULL;
}

char *ctl_plain_words(const char *text)
{
    const char *end, *plain, *begin = find_phrase(text, &end, &plain);
    if (!begin)
        return xalloc_check(strdup(text), 1);
    size_t bytes = strlen(text) + strlen(plain) + 1;
    char *all = xmalloc(bytes);
    snprintf(all, bytes, "%.*s%s%s", (int)(begin - text), text, plain, end);
    return all;
}

/* The text may contain what a server has sent. */
static void print_plain(FILE *to, const char *text)
{
    char *plain = ctl_plain_words(text);
    if (terminal_is(to))
        safe_text_put(to, slice_from_text(plain), SAFE_LINES);
    else
        fputs(plain, to);
    free(plain);
}

static void print_error(struct ctl *ctl, const char *format, va_list args)
{
    char *text;
    /* Output and error often go to the same terminal, and must appear in the order of writing. */
    fflush(ctl->out);
    fputs("Error: ", stderr);
    if (ctl_is_etcdctl(ctl)) {
        vfprintf(stderr, format, args);
    } else if (vasprintf(&text, format, args) >= 0) {
        print_plain(stderr, text);
        free(text);
    }
    fputc('\n', stderr);
}

void ctl_hint(const struct ctl *ctl, const char *format, ...)
{
    char *text;
    va_list args;
    if (ctl_is_etcdctl(ctl) || !terminal_is(stderr))
        return;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    if (len < 0)
        return;
    fflush(ctl->out);
    print_plain(stderr, text);
    fputc('\n', stderr);
    free(text);
}

int ctl_fail(struct ctl *ctl, enum ctl_exit code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_error(ctl, format, args);
    va_end(args);
    return (int)code;
}

int ctl_refuse(struct ctl *ctl, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_error(ctl, format, args);
    va_end(args);
    return CTL_BAD_ARGUMENTS;
}

/* etcdctl authenticates before everything else, so a failure is one to connect. */
static enum ctl_exit exit_of(const struct ctl *ctl, const vigil_error *error)
{
    bool wrong_user = strstr(error->text, "authentication failed") != NULL;
    bool unreached = error->grpc_code < 0 && error->outcome == VIGIL_NOT_SENT;
    return *ctl->globals.user && (wrong_user || unreached) ? CTL_BAD_CONNECTION : CTL_ERROR;
}

int ctl_fail_with(struct ctl *ctl, const vigil_error *error)
{
    return ctl_fail(ctl, exit_of(ctl, error), "%s", ctl_error_text(ctl, error));
}
