#include "cmd/bench/bench.h"

#include "cmd/bench/context.h"

#include <stdio.h>
#include <sys/resource.h>

enum { EXIT_CODE_OK = 0, EXIT_CODE_FAILED = 1, EXIT_CODE_USAGE = 2 };

struct command {
    const char *name;
    enum status (*run)(struct bench_context *context);
    const char *help;
    uint64_t connections, pipeline, key_space;
    const char *keys;
};

static const struct command commands[] = {
    {"put", bench_put_run, "put keys of the key space", 100, 10, 100000, "random"},
    {"get", bench_get_run, "get keys, linearizable", 10, 10, 1, "random"},
    {"list", bench_list_run, "get all keys of the key space at once", 1, 1, 10000, "sequential"},
    {"load", bench_load_all_run, "put every key of the key space once", 10, 100, 1000000,
     "sequential"},
    {"watch", bench_watch_run, "watch a prefix while putting to it", 10, 10, 1000, "sequential"},
    {"catchup", bench_catchup_run, "watch a prefix from the past", 10, 10, 10000, "random"},
    {"idle", bench_idle_run, "hold connections, and watchers with --streams", 1000, 1, 1,
     "sequential"},
    {"lease", bench_lease_run, "grant --total leases, then keep them alive", 10, 100, 1,
     "sequential"},
    {"kube-load", bench_kube_load_run, "Kubernetes API: create pods of --value-size", 10, 50, 10000,
     "sequential"},
    {"kube-list", bench_kube_list_run, "Kubernetes API: list all pods", 1, 1, 10000, "sequential"},
    {"kube-watch", bench_kube_watch_run,
     "Kubernetes API: watch the pods of nodes while changing them", 1000, 50, 1000, "sequential"},
    {"ready", bench_ready_run, "wait up to --duration until the first key can be read", 1, 1, 1,
     "sequential"},
    {"sink", bench_sink_run, "serve: answer every call with --value-size bytes", 1, 1, 1,
     "sequential"},
};

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static void write_usage(FILE *to, const char *program)
{
    fprintf(to, "usage: %s COMMAND [--flag value ...]; --help after a command lists flags\n",
            program);
    for (size_t i = 0; i < COUNT_OF(commands); i++)
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].help);
}

static struct bench_options defaults_of(const struct command *command)
{
    return (struct bench_options){
        .endpoint = "127.0.0.1:2379",
        .cacert = "",
        .token = "",
        .cert = "",
        .key = "",
        .prefix = "bench/",
        .keys = command->keys,
        .connections = command->connections,
        .pipeline = command->pipeline,
        .threads = 1,
        .key_space = command->key_space,
        .value_bytes = 256,
        .streams = command->run == bench_idle_run ? 0 : 1,
        .watchers = 1,
        .nodes = 100,
        .watch_keys = "prefix",
        .behind = "",
        .total = command->run == bench_catchup_run || command->run == bench_lease_run ? 100000 : 0,
        .duration_ns = UINT64_C(5000000000),
        .warmup_ns = UINT64_C(1000000000),
    };
}

static enum status parse_order(const char *text, enum bench_order *ret_order, struct error *error)
{
    static const char *const names[] = {[BENCH_SEQUENTIAL] = "sequential",
                                        [BENCH_RANDOM] = "random",
                                        [BENCH_SHUFFLED] = "shuffled"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret_order = (enum bench_order)i;
            return ST_OK;
        }
    }
    return error_set(error, ST_INVALID, "--keys: %s is not sequential, random or shuffled", text);
}

static enum status parse_watch_keys(const char *text, enum bench_watch_keys *ret_keys,
                                    struct error *error)
{
    static const char *const names[] = {[BENCH_WATCH_PREFIX] = "prefix",
                                        [BENCH_WATCH_ONE_KEY] = "one",
                                        [BENCH_WATCH_OWN_KEYS] = "own"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret_keys = (enum bench_watch_keys)i;
            return ST_OK;
        }
    }
    return error_set(error, ST_INVALID, "--watch-keys: %s is not prefix, one or own", text);
}

static enum status set_up(struct bench_context *context)
{
    const struct bench_options *options = &context->options;
    struct error *error = &context->error;
    size_t prefix_len = strlen(options->prefix);
    if (prefix_len == 0 || prefix_len > BENCH_PREFIX_MAX)
        return error_set(error, ST_INVALID, "--prefix must have 1 to %d bytes", BENCH_PREFIX_MAX);
    if (options->threads > options->connections)
        return error_set(error, ST_INVALID, "--threads: each needs a connection of its own");
    TRY(parse_order(options->keys, &context->order, error));
    TRY(parse_watch_keys(options->watch_keys, &context->watch_keys, error));
    context->target.processes = (struct bench_processes){.server = (pid_t)options->server_pid,
                                                         .store = (pid_t)options->store_pid};
    bool secure;
    context->target.token = options->token;
    context->target.authority = bench_endpoint_name(options->endpoint, &secure);
    TRY(bench_address_resolve(options->endpoint, &context->target.address.socket, error));
    if (!secure)
        return ST_OK;
    return bench_tls_new(options->cacert, options->cert, options->key, options->insecure,
                         &context->target.address.tls, error);
}

/* Loads with thousands of connections need as many files as the system lets us have. */
static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int run(const struct command *command, struct bench_context *context)
{
    bench_report_text(&context->report, "command", command->name);
    enum status status = command->run(context);
    bench_report_text(&context->report, "status", status_name(status));
    if (bench_report_print(&context->report, context->options.json) != ST_OK)
        return EXIT_CODE_FAILED;
    if (status == ST_OK)
        return EXIT_CODE_OK;
    const char *text = context->error.text[0] ? context->error.text : status_text(status);
    fprintf(stderr, "bench %s: %s\n", command->name, text);
    return EXIT_CODE_FAILED;
}

int bench_main(int argc, char **argv)
{
    const struct command *command = argc >= 2 ? find_command(argv[1]) : NULL;
    if (!command) {
        bool asked = argc >= 2 && strcmp(argv[1], "--help") == 0;
        write_usage(asked ? stdout : stderr, argv[0]);
        return asked ? EXIT_CODE_OK : EXIT_CODE_USAGE;
    }
    struct bench_context context = {.options = defaults_of(command)};
    enum status status = bench_options_read(argc - 2, argv + 2, &context.options, &context.error);
    if (status == ST_OK && context.options.help) {
        bench_options_print(&context.options);
        return EXIT_CODE_OK;
    }
    if (status == ST_OK)
        status = set_up(&context);
    if (status != ST_OK) {
        fprintf(stderr, "bench %s: %s\n", command->name, context.error.text);
        return EXIT_CODE_USAGE;
    }
    raise_file_limit();
    int exit_code = run(command, &context);
    bench_report_fini(&context.report);
    bench_tls_free(context.target.address.tls);
    return exit_code;
}
