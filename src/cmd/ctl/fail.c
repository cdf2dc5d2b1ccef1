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

/* What the user can do. */
static const char *advice(int code)
{
    switch (code) {
    case VIGIL_ERROR_TIMEOUT:
    case VIGIL_ERROR_UNAVAILABLE:
        return "Is the server running there? See --endpoints, --cacert and --command-timeout.";
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
    const char *hint = advice(error->code), *endpoints = ctl->globals.endpoints;
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
