#include "cmd/ctl/session.h"

#include "base/clock.h"
#include "base/xalloc.h"
#include "client/connect/error.h"
#include "codec/pb/rpc.pb.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

enum { LINE_BYTES_MAX = 4096, UNLIMITED_MS = 24 * 3600 * 1000 };

static const char *copy_text(struct ctl *ctl, const char *text, size_t len)
{
    char *copy = xalloc_check(arena_alloc(ctl->arena, len + 1), len);
    memcpy(copy, text, len);
    copy[len] = 0;
    return copy;
}

/* -- passwords -- */

static const char *read_line(struct ctl *ctl)
{
    char line[LINE_BYTES_MAX];
    if (!fgets(line, sizeof(line), stdin))
        return "";
    return copy_text(ctl, line, strcspn(line, "\r\n"));
}

const char *ctl_ask_hidden(struct ctl *ctl, const char *prompt)
{
    struct termios before;
    bool is_terminal = tcgetattr(STDIN_FILENO, &before) == 0;
    if (is_terminal) { /* before the prompt, after which the user or a script may type */
        struct termios hidden = before;
        hidden.c_lflag &= ~(tcflag_t)ECHO;
        tcsetattr(STDIN_FILENO, TCSADRAIN, &hidden);
    }
    fprintf(stdout, "%s", prompt);
    fflush(stdout);
    const char *line = read_line(ctl);
    if (is_terminal)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    fputc('\n', stdout);
    return line;
}

/* -- the client -- */

/* In 3.4 --insecure-skip-tls-verify asks for no TLS, and counts only where another flag does. */
static bool skips_verify(const struct ctl *ctl)
{
    const struct ctl_globals *globals = &ctl->globals;
    bool has_others = *globals->ca_file || *globals->cert_file || *globals->key_file ||
                      !globals->insecure_transport;
    return globals->insecure_skip_verify && (ctl->style != CTL_ETCDCTL_3_4 || has_others);
}

bool ctl_has_tls(const struct ctl *ctl)
{
    const struct ctl_globals *globals = &ctl->globals;
    return *globals->ca_file || *globals->cert_file || *globals->key_file ||
           !globals->insecure_transport || skips_verify(ctl);
}

/* libvigil would take an endpoint without a scheme for http. */
static const char *with_schemes(struct ctl *ctl, const char *endpoints)
{
    if (!ctl_has_tls(ctl))
        return endpoints;
    AUTO(buf_fini) struct buf all = {0};
    struct slice item;
    while (option_list_next(&endpoints, &item)) {
        bool bare = !memmem(item.ptr, item.len, "://", 3);
        enum status status = buf_append_format(&all, "%s%s%.*s", all.len ? "," : "",
                                               bare ? "https://" : "", SLICE_ARGS(item));
        xalloc_check(status == ST_OK ? all.ptr : NULL, item.len);
    }
    return copy_text(ctl, (const char *)all.ptr, all.len);
}

static int check_file(struct ctl *ctl, const char *flag, const char *file)
{
    /* An empty value on the command line is most likely an unset variable of a script. */
    if (*file == 0 && options_source(ctl->given, flag) == OPTION_FROM_FLAG)
        return ctl_refuse(ctl, "empty string is passed to --%s option", flag);
    if (*file && access(file, R_OK) != 0)
        return ctl_refuse(ctl, "open %s: %s", file,
                          errno == ENOENT ? "no such file or directory" : "permission denied");
    return CTL_OK;
}

static int check_tls(struct ctl *ctl)
{
    const struct ctl_globals *globals = &ctl->globals;
    if (!*globals->cert_file != !*globals->key_file)
        return ctl_refuse(ctl, "KeyFile and CertFile must both be present[key: %s, cert: %s]",
                          globals->key_file, globals->cert_file);
    int code = check_file(ctl, "cert", globals->cert_file);
    if (code == CTL_OK)
        code = check_file(ctl, "key", globals->key_file);
    return code == CTL_OK ? check_file(ctl, "cacert", globals->ca_file) : code;
}

/* The user may contain the password; otherwise the user types it once. An empty password means that
 * there is no user, as in etcdctl. */
static void set_user(struct ctl *ctl, vigil_options *options)
{
    struct ctl_globals *globals = &ctl->globals;
    /* A token stands for a user that has already logged in. */
    if (*globals->token) {
        options->token = globals->token;
        return;
    }
    if (!*globals->user)
        return;
    const char *colon = *globals->password ? NULL : strchr(globals->user, ':');
    if (colon) {
        globals->password = colon + 1;
        globals->user = copy_text(ctl, globals->user, (size_t)(colon - globals->user));
    } else if (!*globals->password) {
        globals->password = ctl_ask_hidden(ctl, "Password: ");
    }
    if (!*globals->password)
        globals->user = "";
    options->user = *globals->user ? globals->user : NULL;
    options->password = *globals->user ? globals->password : NULL;
}

static void log_line(void *user, int level, const char *text)
{
    (void)user;
    fprintf(stderr, "%s: %s\n", level == VIGIL_LOG_WARN ? "warning" : "info", text);
}

static int64_t to_ms(int64_t ns)
{
    return ns <= 0 ? 0 : (ns + NS_PER_MS - 1) / NS_PER_MS;
}

static const char *given_or_null(const char *text)
{
    return *text ? text : NULL;
}

static void set_options(struct ctl *ctl, const char *endpoints, vigil_options *options)
{
    const struct ctl_globals *globals = &ctl->globals;
    vigil_options_init(options);
    options->endpoints = with_schemes(ctl, endpoints);
    options->ca_file = given_or_null(globals->ca_file);
    options->cert_file = given_or_null(globals->cert_file);
    options->key_file = given_or_null(globals->key_file);
    options->insecure_skip_verify = skips_verify(ctl);
    if (!globals->insecure_discovery) /* the certificates are for the domain */
        options->server_name = given_or_null(globals->discovery_srv);
    /* A --dial-timeout of 0 waits without a limit, as in etcdctl. */
    options->connect_timeout_ms =
        globals->dial_timeout_ns > 0 ? to_ms(globals->dial_timeout_ns) : UNLIMITED_MS;
    options->call_timeout_ms = to_ms(globals->command_timeout_ns);
    options->keepalive_ms = to_ms(globals->keepalive_ns);
    options->keepalive_timeout_ms = to_ms(globals->keepalive_timeout_ns);
    options->receive_bytes_max =
        globals->max_receive_bytes > 0 ? (size_t)globals->max_receive_bytes : INT32_MAX;
    if (globals->max_request_bytes > 0)
        options->send_bytes_max = (size_t)globals->max_request_bytes;
    /* The command drives the client itself, so that callbacks and signals arrive on one thread. */
    options->own_thread = 0;
    if (globals->debug)
        options->log = log_line;
    set_user(ctl, options);
}

static vigil_client *new_client(struct ctl *ctl, const vigil_options *options, int *ret_exit)
{
    vigil_client *client;
    vigil_error error;
    if (vigil_client_new(options, &client, &error) == VIGIL_OK)
        return client;
    *ret_exit = ctl_fail(ctl, CTL_BAD_CONNECTION, "%s", error.text);
    return NULL;
}

static int check_client(struct ctl *ctl)
{
    const char *endpoints = ctl->globals.endpoints;
    struct slice item;
    if (ctl->globals.format == CTL_UNKNOWN_FORMAT && ctl_is_etcdctl(ctl))
        return ctl_fail(ctl, CTL_BAD_FEATURE, "unsupported output format");
    if (ctl->globals.format == CTL_UNKNOWN_FORMAT)
        return ctl_fail(ctl, CTL_BAD_FEATURE,
                        "there is no output format \"%s\": use simple, fields, json, jsonl, table "
                        "or protobuf",
                        ctl->globals.write_out);
    if (!option_list_next(&endpoints, &item))
        return ctl_fail(ctl, CTL_BAD_CONNECTION, "etcdclient: no available endpoints");
    return check_tls(ctl);
}

vigil_client *ctl_client_of(struct ctl *ctl, const char *endpoint, int *ret_exit)
{
    vigil_options options;
    *ret_exit = check_client(ctl);
    if (*ret_exit != CTL_OK)
        return NULL;
    set_options(ctl, endpoint, &options);
    return new_client(ctl, &options, ret_exit);
}

vigil_client *ctl_client(struct ctl *ctl, int *ret_exit)
{
    *ret_exit = CTL_OK;
    if (ctl->client)
        return ctl->client;
    *ret_exit = check_client(ctl);
    if (*ret_exit != CTL_OK)
        return NULL;
    vigil_options options;
    const char *discovered = ctl->globals.discovered;
    set_options(ctl, discovered ? discovered : ctl->globals.endpoints, &options);
    ctl->client = new_client(ctl, &options, ret_exit);
    return ctl->client;
}

/* -- endpoints -- */

/* etcdctl asks each of --endpoints also if there is a domain. */
struct ctl_endpoints ctl_endpoints(struct ctl *ctl)
{
    bool use_domain = !ctl_is_etcdctl(ctl) && ctl->globals.discovered;
    const char *rest = use_domain ? ctl->globals.discovered : ctl->globals.endpoints;
    size_t room = 1;
    for (const char *at = rest; *at; at++)
        room += *at == ',';
    const char **texts = xalloc_check(arena_alloc(ctl->arena, room * sizeof(*texts)), room);
    struct slice item;
    size_t count = 0;
    while (option_list_next(&rest, &item))
        texts[count++] = copy_text(ctl, (const char *)item.ptr, item.len);
    return (struct ctl_endpoints){texts, count};
}

int ctl_member_endpoints(struct ctl *ctl, struct ctl_endpoints *ret_endpoints)
{
    struct pb_member_list_request request = {.linearizable = true};
    const void *response;
    int code = ctl_call(ctl, METHOD_MEMBER_LIST, &request, &response);
    if (code != CTL_OK)
        return code;
    const struct pb_member_list_response *list = response;
    size_t count = 0;
    for (size_t i = 0; i < list->members_count; i++)
        count += list->members[i].client_urls_count;
    const char **texts = xalloc_check(arena_alloc(ctl->arena, (count + 1) * sizeof(*texts)), 1);
    size_t at = 0;
    for (size_t i = 0; i < list->members_count; i++)
        for (size_t k = 0; k < list->members[i].client_urls_count; k++) {
            struct slice url = list->members[i].client_urls[k];
            texts[at++] = copy_text(ctl, (const char *)url.ptr, url.len);
        }
    *ret_endpoints = (struct ctl_endpoints){texts, count};
    return CTL_OK;
}

/* -- calls -- */

struct ctl_answer {
    struct ctl_answer *next;
    vigil_call *call; /* owned */
};

void ctl_drop_answers(struct ctl *ctl)
{
    while (ctl->answers) {
        struct ctl_answer *answer = ctl->answers;
        ctl->answers = answer->next;
        vigil_call_free(answer->call);
        free(answer);
    }
}

void ctl_end(struct ctl *ctl)
{
    ctl_drop_answers(ctl);
    vigil_client_free(ctl->client);
    ctl->client = NULL;
}

/* libvigil refuses it, too, but etcdctl names both sizes. */
static bool is_too_large(struct ctl *ctl, vigil_client *client, const struct pb_message *type,
                         const void *request, vigil_error *ret_error)
{
    size_t bytes = pb_size(type, request);
    if (bytes <= client->send_bytes_max)
        return false;
    *ret_error = (vigil_error){.code = VIGIL_ERROR_REQUEST_TOO_LARGE, .grpc_code = -1};
    snprintf(ret_error->text, sizeof(ret_error->text),
             ctl_is_etcdctl(ctl) ? "rpc error: code = ResourceExhausted desc = trying to send "
                                   "message larger than max (%zu vs. %zu)"
                                 : "the request has %zu bytes and may have %zu",
             bytes, client->send_bytes_max);
    return true;
}

static bool has_connected(const vigil_client *client)
{
    vigil_client_stats stats;
    vigil_client_get_stats(client, &stats, sizeof(stats));
    return stats.connects > 0;
}

static void note_end(vigil_call *call, void *user)
{
    (void)call;
    *(bool *)user = true;
}

/* etcdctl authenticates first, and waits only --dial-timeout for a server to do that. */
static int run_call(const struct ctl *ctl, vigil_client *client, vigil_call *call)
{
    if (!*ctl->globals.user || ctl->globals.dial_timeout_ns <= 0 || has_connected(client))
        return vigil_call_run(call);
    bool ended = false;
    int64_t give_up_ns = clock_mono_ns(clock_system()) + ctl->globals.dial_timeout_ns;
    int code = vigil_call_start(call, note_end, &ended);
    while (code == VIGIL_OK && !ended) {
        int64_t left_ns = give_up_ns - clock_mono_ns(clock_system());
        bool late = left_ns <= 0 && !has_connected(client);
        /* A canceled call still ends through its callback, which the loop waits for. */
        if (late)
            vigil_call_cancel(call);
        ctl_wait(client, late || has_connected(client) ? -1 : (int)to_ms(left_ns));
    }
    return code == VIGIL_OK ? vigil_call_error(call)->code : code;
}

int ctl_call_at(struct ctl *ctl, vigil_client *client, enum client_method_id method,
                const void *request, const void **ret_response, vigil_error *ret_error)
{
    if (is_too_large(ctl, client, client_methods[method].request, request, ret_error))
        return ret_error->code;
    vigil_call *call = client_request(client, method, request);
    int code = run_call(ctl, client, call);
    *ret_error = *vigil_call_error(call);
    if (code == VIGIL_ERROR_CANCELED && !has_connected(client))
        client_error_set(ret_error, VIGIL_ERROR_TIMEOUT, VIGIL_NOT_SENT,
                         "no server was reached within --dial-timeout");
    if (code != VIGIL_OK) {
        vigil_call_free(call);
        return code;
    }
    *ret_response = client_result(call, method);
    /* The response is in the call, so the call lives until the command ends. */
    struct ctl_answer *answer = xmalloc(sizeof(*answer));
    *answer = (struct ctl_answer){.next = ctl->answers, .call = call};
    ctl->answers = answer;
    return VIGIL_OK;
}

int ctl_call(struct ctl *ctl, enum client_method_id method, const void *request,
             const void **ret_response)
{
    int code;
    vigil_client *client = ctl_client(ctl, &code);
    vigil_error error;
    if (!client)
        return code;
    if (ctl_call_at(ctl, client, method, request, ret_response, &error) != VIGIL_OK)
        return ctl_fail_with(ctl, &error);
    return CTL_OK;
}

/* -- waiting -- */

static volatile sig_atomic_t interrupted;
static const int signals[] = {SIGINT, SIGTERM, SIGCHLD};

static void note_signal(int number)
{
    if (number != SIGCHLD)
        interrupted = 1;
}

void ctl_catch_signals(void)
{
    struct sigaction action = {.sa_handler = note_signal};
    sigset_t caught;
    sigemptyset(&caught);
    for (size_t i = 0; i < COUNT_OF(signals); i++) {
        sigaddset(&caught, signals[i]);
        sigaction(signals[i], &action, NULL);
    }
    /* Signals arrive only while ctl_wait_for waits. One that comes in between is not missed. */
    sigprocmask(SIG_BLOCK, &caught, NULL);
}

bool ctl_interrupted(void)
{
    return interrupted;
}

bool ctl_wait(vigil_client *client, int timeout_ms)
{
    return ctl_wait_for(client, -1, timeout_ms);
}

bool ctl_wait_for(vigil_client *client, int fd, int timeout_ms)
{
    sigset_t open;
    sigprocmask(SIG_BLOCK, NULL, &open);
    for (size_t i = 0; i < COUNT_OF(signals); i++)
        sigdelset(&open, signals[i]);
    int due_ms = vigil_client_timeout_ms(client);
    /* The client has timers of its own, such as that of a ping. */
    if (timeout_ms < 0 || (due_ms >= 0 && due_ms < timeout_ms))
        timeout_ms = due_ms;
    struct timespec timeout = {.tv_sec = timeout_ms / 1000,
                               .tv_nsec = (long)(timeout_ms % 1000) * NS_PER_MS};
    struct pollfd descriptors[] = {{.fd = vigil_client_fd(client), .events = POLLIN},
                                   {.fd = fd, .events = POLLIN}};
    ppoll(descriptors, COUNT_OF(descriptors), timeout_ms < 0 ? NULL : &timeout, &open);
    vigil_client_process(client);
    return !interrupted;
}
