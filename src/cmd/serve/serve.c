#include "cmd/serve/serve.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/version.h"
#include "cmd/serve/announce/announce.h"
#include "cmd/serve/announce/banner.h"
#include "cmd/serve/announce/kubeconfig.h"
#include "cmd/serve/announce/notify.h"
#include "cmd/serve/announce/quota_notice.h"
#include "cmd/serve/config/config.h"
#include "cmd/serve/config/config_upstream.h"
#include "cmd/serve/config/log_rotation.h"
#include "cmd/serve/config/memory.h"
#include "cmd/serve/config/settings.h"
#include "cmd/serve/preflight.h"
#include "cmd/serve/signals.h"
#include "cmd/serve/tier.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAME_SIGNAL_NS (200 * NS_PER_MS)
#define FAREWELL_NS (2 * NS_PER_S) /* how long clients of a discarded mirror may take to end */

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct serve {
    const struct serve_how *how;
    bool as_etcd;
    bool for_people; /* started on a terminal: sentences and a banner instead of JSON */
    struct serve_settings settings;
    struct serve_config config;
    struct serve_tier tier; /* in front of a kube-apiserver */
    struct signals signals;
    _Atomic bool reset; /* the mirror does not belong to the cluster's past */
};

extern char **environ;

/* -- Flags -- */

static const char *program(const struct serve *s)
{
    return s->settings.options.table->program;
}

/* The message is etcd's. etcd logs it as a warning, which is kept only under etcd's name, since the
 * server ends. */
static int fail_settings(const struct serve *s, const struct error *error)
{
    if (s->for_people)
        fprintf(stderr, "%s: %s\n", program(s), error->text);
    else
        LOG_AT(s->as_etcd ? LOG_WARN : LOG_FATAL, "failed to verify flags",
               LOG_TEXT("error", error->text));
    return EXIT_FAILED;
}

/* Returns -1 to continue, otherwise the exit status. */
static int read_settings(struct serve *s, int count, char **args)
{
    struct error error;
    static char *no_variables[] = {NULL};
    static const struct options_table *const tables[] = {
        [SERVE_AS_VIGIL] = &serve_table,
        [SERVE_AS_ETCD] = &serve_etcd_table,
        [SERVE_AS_APISERVER] = &serve_apiserver_table,
    };
    const struct options_table *table = tables[s->how->name];
    /* kube-apiserver takes no settings from the environment. */
    char **variables = table->flags_only ? no_variables : environ;
    switch (serve_settings_read(&s->settings, table, count, args, variables, &error)) {
    case SETTINGS_READ:
        serve_options_note_given(&s->settings.options, &s->settings.values);
        return -1;
    case SETTINGS_HELP:
        options_write_help(table, stdout);
        return EXIT_OK;
    case SETTINGS_VERSION:
        if (!s->as_etcd)
            printf("vigil %s (etcd %s)\n", VIGIL_VERSION, s->settings.values.emulate_version);
        else
            printf("etcd Version: %s\nGit SHA: vigil-%s\nGo Version: none\nGo OS/Arch: linux/%s\n",
                   s->settings.values.emulate_version, VIGIL_VERSION, ARCHITECTURE);
        return EXIT_OK;
    case SETTINGS_MISUSED:
        fprintf(stderr, "%s\nUsage:\n  %s [flags]    (%s --help shows them)\n", error.text,
                table->program, table->program);
        return EXIT_USAGE;
    case SETTINGS_WRONG:
        /* The log format could not be read, so the terminal alone decides how the error looks. */
        s->for_people = !s->as_etcd && isatty(STDERR_FILENO) == 1;
        return fail_settings(s, &error);
    }
    return EXIT_FAILED;
}

/* -- Logging -- */

static enum status open_log(struct serve *s, struct error *error)
{
    static const enum log_level levels[] = {LOG_DEBUG, LOG_INFO,  LOG_WARN,
                                            LOG_ERROR, LOG_FATAL, LOG_FATAL};
    bool console = s->settings.values.log_format == SERVE_LOG_CONSOLE;
    s->for_people = s->settings.values.log_format == SERVE_LOG_AUTO && !s->as_etcd &&
                    isatty(STDERR_FILENO) == 1;
    log_set_level(s->settings.values.debug ? LOG_DEBUG : levels[s->settings.values.log_level]);
    struct logger_options options = {
        .outputs = s->settings.values.log_outputs,
        .format = console || s->for_people ? LOG_CONSOLE : LOG_JSON,
    };
    bool compress = false;
    if (s->settings.values.enable_log_rotation)
        TRY(log_rotation_read(s->settings.values.log_rotation_config_json, options.outputs,
                              &options.rotation, &compress, error));
    TRY(logger_open(&options, error));
    if (compress)
        log_warn("old log files are not compressed", LOG_TEXT("flag", "log-rotation-config-json"));
    return ST_OK;
}

static void on_fatal(void *ctx, const char *text)
{
    (void)ctx;
    log_fatal("the storage failed; stopping", LOG_TEXT("error", text));
}

static void on_warning(void *ctx, const char *text)
{
    (void)ctx;
    log_warn("storage", LOG_TEXT("warning", text));
}

static void on_cut(void *ctx, const struct engine_local_cut *cut)
{
    (void)ctx;
    char segment[32];
    snprintf(segment, sizeof(segment), "%016" PRIx64 ".seg", cut->segment_id);
    log_warn("cut off the end of the log: a write that was not finished",
             LOG_U64("index", cut->index), LOG_U64("bytes", cut->bytes),
             LOG_TEXT("segment", segment), LOG_U64("offset", cut->offset),
             LOG_TEXT("reason", cut->reason));
}

static void on_defragment(void *ctx, const struct engine_local_defragment *defragment)
{
    const struct serve *s = ctx;
    int64_t threshold = s->config.server.engine.defragment_from_bytes;
    char size[BYTES_TEXT_BYTES], in_use[BYTES_TEXT_BYTES], threshold_text[BYTES_TEXT_BYTES];
    bytes_format((uint64_t)defragment->db_bytes, size);
    bytes_format((uint64_t)defragment->db_bytes_in_use, in_use);
    bytes_format((uint64_t)threshold, threshold_text);
    log_info(defragment->begun ? "defragmenting" : "Skipping defragmentation",
             LOG_I64("current-db-size-bytes", defragment->db_bytes),
             LOG_TEXT("current-db-size", size),
             LOG_I64("current-db-size-in-use-bytes", defragment->db_bytes_in_use),
             LOG_TEXT("current-db-size-in-use", in_use),
             LOG_I64("bootstrap-defrag-threshold-bytes", threshold),
             LOG_TEXT("bootstrap-defrag-threshold", threshold_text));
}

static void on_waiting(void *ctx, const char *reason)
{
    (void)ctx;
    log_warn("waiting for the cluster", LOG_TEXT("reason", reason));
}

static void on_loading(void *ctx, const struct mirror_loaded *loaded)
{
    (void)ctx;
    log_info(loaded->is_complete ? "read the state of the cluster"
                                 : "reading the state of the cluster",
             LOG_TEXT("why", loaded->why), LOG_U64("keys", loaded->keys),
             LOG_U64("not-in-the-mirror", loaded->different));
}

static void on_following(void *ctx, const struct mirror_followed *followed)
{
    (void)ctx;
    log_info("following the cluster", LOG_I64("revision", followed->revision),
             LOG_TEXT("endpoint", followed->endpoint), LOG_HEX("member-id", followed->member_id),
             LOG_TEXT("etcd-version", followed->version),
             LOG_HEX("cluster-id", followed->cluster_id),
             LOG_U64("raft-term", followed->raft_term));
}

static void on_reset(void *ctx, const char *reason)
{
    struct serve *s = ctx;
    log_warn("the mirror of the cluster is thrown away and will be loaded again",
             LOG_TEXT("reason", reason));
    atomic_store(&s->reset, true);
    signals_wake();
}

/* etcd's warnings about TLS files without https URLs and the reverse. */
static void tell_tls(const struct serve *s)
{
    const struct server_config *config = &s->config.server;
    const struct tls_options *tls = &config->tls.options;
    bool files = *tls->cert_file || *tls->key_file;
    if (files && config->tls.automatic)
        log_warn("ignoring client auto TLS since certs given");
    for (size_t i = 0; i < config->listen_count; i++) {
        struct slice url = s->config.listen_texts[i];
        /* etcd warns about client URLs only. */
        if (config->roles[i] == SERVER_METRICS)
            continue;
        if (!config->listen[i].secure && files)
            log_warn("scheme is http or unix while key and cert files are present; ignoring key "
                     "and cert files",
                     LOG_SLICE("client-url", url));
        if (!config->listen[i].secure && tls->client_cert_auth)
            log_warn("scheme is http or unix while --client-cert-auth is enabled; ignoring client "
                     "cert auth for this URL",
                     LOG_SLICE("client-url", url));
    }
    if (files)
        server_tls_tell(tls);
}

/* -- Signals -- */

static void notify_reloading(void)
{
    char state[96];
    snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%lld",
             (long long)(clock_mono_ns(clock_system()) / NS_PER_US));
    notify_manager(state);
}

/* Waits for a signal that ends the server, or for a reset (SIGNALS_WOKEN), and meanwhile feeds the
 * watchdog of the service manager if it has one. */
static int wait_for_end(struct serve *s)
{
    int64_t watchdog_ns = notify_watchdog_ns();
    for (;;) {
        if (atomic_exchange(&s->reset, false)) /* perhaps during the start, which took the signal */
            return SIGNALS_WOKEN;
        int number = signals_wait(&s->signals, watchdog_ns > 0 ? watchdog_ns / 2 : -1);
        if (number == 0) {
            notify_manager("WATCHDOG=1");
        } else if (number == SIGUSR1) {
            /* The log files have been rotated. The line also shows the operator that the signal
             * arrived. */
            notify_reloading();
            logger_reopen();
            log_info("reopened the log files");
            notify_manager("READY=1");
        } else if (number > 0) {
            return number;
        }
    }
}

/* Waits until every connection has ended or a second signal arrives. Some programs that stop a
 * server (timeout, a terminal) send their signal twice at once, which counts as one. */
static void drain(const struct serve *s, struct server *server)
{
    int64_t begin = clock_mono_ns(clock_system());
    server_drain(server);
    while (!server_drained(server)) {
        int second = signals_wait(&s->signals, 10 * NS_PER_MS);
        if (second <= 0 || second == SIGUSR1 ||
            clock_mono_ns(clock_system()) - begin < SAME_SIGNAL_NS)
            continue;
        log_warn("received another signal; stopping at once",
                 LOG_TEXT("signal", signals_name(second)));
        signals_die_by(&s->signals, second);
    }
}

/* -- Running -- */

/* Builds the configuration and checks the settings against each other. */
static enum status configure(struct serve *s, struct error *error)
{
    TRY(serve_settings_log(&s->settings, error));
    bool in_front = config_tier_is_wanted(&s->settings.values);
    if (in_front)
        TRY(config_tier_check_flags(&s->settings.options, s->as_etcd, error));
    else
        TRY(config_upstream_check_flags(&s->settings.options,
                                        *s->settings.values.upstream_endpoints, error));
    TRY(config_upstream_check_variables(&s->settings.options,
                                        s->settings.path ? NULL : s->settings.variables, error));
    TRY(serve_config_init(&s->config, &s->settings.values, s->as_etcd, error));
    if (in_front) {
        serve_tier_init(&s->tier, &s->config.tier);
        s->config.server.face = &s->tier.face;
    }
    /* As in etcd, a value below the minimum is raised with a warning. */
    int64_t used = s->config.server.engine.watch_progress_interval_ns;
    if (s->settings.values.watch_progress_notify_interval_ns < used)
        log_warn("set the watch progress notify interval to its minimum",
                 LOG_I64("watch-progress-notify-interval-ms", used / NS_PER_MS));
    if (*s->how->without_effect)
        log_info("flags without effect here", LOG_LIST("flags", s->how->without_effect));
    if (*s->how->not_enforced)
        log_warn("flags on which the security of a cluster may rely have no effect here",
                 LOG_LIST("flags", s->how->not_enforced));
    tell_tls(s);
    /* The banner says it on a terminal. */
    if (s->config.kube_withheld && !s->for_people)
        log_info("the Kubernetes API is not served: its default address is open to every user of "
                 "this machine; ask for it with --listen-kube-urls, with tokens "
                 "(--kube-token-file) or over TLS with certificates",
                 LOG_TEXT("reason", s->config.kube_withheld));
    s->config.server.cluster.ctx = s;
    s->config.server.cluster.on_reset = on_reset;
    s->config.server.cluster.on_waiting = on_waiting;
    s->config.server.cluster.on_loading = on_loading;
    s->config.server.cluster.on_following = on_following;
    bool is_store = !s->config.server.clustered && !in_front;
    if (is_store && (!s->for_people || s->settings.values.quota_backend_bytes))
        quota_notice_log(s->settings.values.quota_backend_bytes);
    s->config.server.engine.ctx = s;
    s->config.server.engine.on_fatal = on_fatal;
    s->config.server.engine.on_warning = on_warning;
    s->config.server.engine.on_cut = on_cut;
    s->config.server.engine.on_defragment = on_defragment;
    return ST_OK;
}

static enum status start(struct serve *s, struct server **ret_server, struct error *error)
{
    /* This precedes all threads, because glibc reads the setting when a thread allocates for the
     * first time. */
    memory_fit_address_space();
    preflight_files((uint64_t)s->settings.values.max_connections,
                    s->settings.values.connections_given);
    TRY(preflight_data_dir(s->config.server.engine.data_dir, error));
    preflight_privacy(s->config.server.engine.data_dir);
    return server_start(&s->config.server, ret_server, error);
}

static int fail(const struct serve *s, const struct error *error)
{
    if (s->for_people)
        fprintf(stderr, "%s: %s\n", program(s), error->text);
    else
        LOG_AT(LOG_FATAL, "cannot start", LOG_TEXT("error", error->text));
    return EXIT_FAILED;
}

static int end_by(const struct serve *s, int number)
{
    if (s->as_etcd)
        signals_die_by(&s->signals, number);
    return EXIT_OK;
}

/* Ends what clients still do on a mirror that is void. Returns a signal that ends the server, or 0.
 */
static int say_farewell(const struct serve *s, struct server *server)
{
    int number = 0;
    int64_t end_ns = clock_mono_ns(clock_system()) + FAREWELL_NS;
    server_drain(server);
    /* Every signal ends the wait, but SIGUSR1, which asks for new log files, does not end the
     * server. */
    while (number <= 0 && !server_drained(server) && clock_mono_ns(clock_system()) < end_ns)
        number = signals_wait(&s->signals, 10 * NS_PER_MS);
    return number > 0 && number != SIGUSR1 ? number : 0;
}

/* Replaces the server by one that has mirrored nothing yet. */
static enum status restart(struct serve *s, struct server **server, int *ret_signal,
                           struct error *error)
{
    notify_reloading();
    /* The next server listens where this one does, also if the ports were chosen. */
    for (size_t i = 0; i < s->config.server.listen_count; i++)
        if (server_bound(*server, i))
            s->config.urls[i] = *server_bound(*server, i);
    /* Watches end as compacted, so that their clients read the state again. They must not resume:
     * the next history may have other contents at the same revisions. */
    int64_t void_until = server_end_watches(*server);
    *ret_signal = say_farewell(s, *server);
    server_free(TAKE(*server));
    TRY(server_discard_mirror(&s->config.server, void_until, error));
    /* The mirror is discarded even when the server is about to end: the next start must not serve
     * it either. */
    if (*ret_signal)
        return ST_CANCELED;
    TRY(server_start(&s->config.server, server, error));
    log_info("serving again");
    notify_manager("READY=1");
    return ST_OK;
}

static int run(struct serve *s, struct server *server)
{
    char path[KUBECONFIG_PATH_BYTES];
    const char *kubeconfig = kubeconfig_write(&s->config, server, path) ? path : NULL;
    serve_config_set_client_urls(&s->config, server_client_urls(server));
    if (s->for_people)
        banner_write(stderr, &s->config, server, kubeconfig);
    else
        announce_ready(&s->config, server, kubeconfig);
    notify_manager("READY=1");
    int number;
    while ((number = wait_for_end(s)) == SIGNALS_WOKEN) {
        struct error error;
        enum status status = restart(s, &server, &number, &error);
        if (status != ST_OK && !number)
            return fail(s, &error);
        if (number) {
            log_info("received signal; stopping", LOG_TEXT("signal", signals_name(number)));
            return end_by(s, number);
        }
    }
    log_info("received signal; shutting down", LOG_TEXT("signal", signals_name(number)));
    announce_closing(&s->config);
    notify_manager("STOPPING=1");
    drain(s, server);
    server_free(server);
    announce_closed(&s->config);
    return end_by(s, number);
}

static int serve(struct serve *s, int count, char **args)
{
    struct server *server;
    struct error error;
    signals_block(&s->signals);
    if (open_log(s, &error) != ST_OK)
        return fail_settings(s, &error);
    if (!s->for_people)
        announce_arguments(program(s), count, args);
    if (configure(s, &error) != ST_OK)
        return fail_settings(s, &error);
    if (!s->for_people)
        announce_start(&s->config, &s->settings.values);
    return start(s, &server, &error) == ST_OK ? run(s, server) : fail(s, &error);
}

int serve_main(int count, char **args, const struct serve_how *how)
{
    struct serve s = {.how = how, .as_etcd = how->name == SERVE_AS_ETCD};
    int code = read_settings(&s, count, args);
    if (code < 0)
        code = serve(&s, count, args);
    logger_close();
    serve_config_fini(&s.config);
    serve_settings_fini(&s.settings);
    return code;
}
