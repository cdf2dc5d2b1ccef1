/*
 * vigil-bench: a load generator that costs so little that the server is what is measured.
 *
 *     vigil-bench put|get|list|load|watch|catchup|idle|ready|sink [--flag value ...]
 *
 * The exit status is 0, 1 when a call failed or the load could not run, 2 for flags that make no
 * sense.
 */
#include "base/version.h"
#include "load/context.h"

#include <stdio.h>
#include <sys/resource.h>

enum { EXIT_CODE_OK = 0, EXIT_CODE_FAILED = 1, EXIT_CODE_USAGE = 2 };

struct command {
    const char *name;
    enum status (*run)(struct bench_context *context);
    const char *help;
    uint64_t connections, pipeline, key_space;
    enum bench_order keys;
};

static const struct command commands[] = {
    {"put", bench_put_run, "put keys of the key space", 100, 10, 100000, BENCH_RANDOM},
    {"get", bench_get_run, "get keys, linearizable", 10, 10, 1, BENCH_RANDOM},
    {"list", bench_list_run, "get all keys of the key space at once", 1, 1, 10000,
     BENCH_SEQUENTIAL},
    {"load", bench_load_all_run, "put every key of the key space once", 10, 100, 1000000,
     BENCH_SEQUENTIAL},
    {"watch", bench_watch_run, "watch a prefix while putting to it", 10, 10, 1000,
     BENCH_SEQUENTIAL},
    {"catchup", bench_catchup_run, "watch a prefix from the past", 10, 10, 10000, BENCH_RANDOM},
    {"idle", bench_idle_run, "hold connections, and watchers with --streams", 1000, 1, 1,
     BENCH_SEQUENTIAL},
    {"lease", bench_lease_run, "grant --total leases, then keep them alive", 10, 100, 1,
     BENCH_SEQUENTIAL},
    {"kube-load", bench_kube_load_run, "Kubernetes API: create pods of --value-size", 10, 50, 10000,
     BENCH_SEQUENTIAL},
    {"kube-list", bench_kube_list_run, "Kubernetes API: list all pods", 1, 1, 10000,
     BENCH_SEQUENTIAL},
    {"kube-watch", bench_kube_watch_run,
     "Kubernetes API: watch the pods of nodes while changing them", 1000, 50, 1000,
     BENCH_SEQUENTIAL},
    {"kube-start", bench_kube_start_run,
     "Kubernetes API: start --streams informers on each connection at once", 1000, 1, 1,
     BENCH_SEQUENTIAL},
    {"kube-renew", bench_kube_renew_run,
     "Kubernetes API: renew the Leases of --pipeline nodes on each connection", 200, 1, 1,
     BENCH_SEQUENTIAL},
    {"kube-scale", bench_kube_scale_run,
     "Kubernetes API: simulate --nodes nodes with their Leases, watches and pods", 1, 1, 1,
     BENCH_SEQUENTIAL},
    {"ready", bench_ready_run, "wait up to --duration until the first key can be read", 1, 1, 1,
     BENCH_SEQUENTIAL},
    {"sink", bench_sink_run, "serve: answer every call with --value-size bytes", 1, 1, 1,
     BENCH_SEQUENTIAL},
};

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static void write_usage(FILE *to)
{
    fprintf(to, "usage: vigil-bench COMMAND [--flag value ...]; --help after a command lists "
                "flags\n");
    for (size_t i = 0; i < COUNT_OF(commands); i++)
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].help);
    fprintf(to, "  %-10s %s\n  %-10s %s\n", "man", "write the manual page (roff)", "version",
            "print the version");
}

static void write_man(FILE *to)
{
    fprintf(
        to,
        ".TH \"VIGIL\\-BENCH\" 1 \"%s\" \"vigil %s\"\n"
        ".SH NAME\nvigil\\-bench \\- puts load on a server of etcd\\(aqs or Kubernetes\\(aq API "
        "and measures it\n"
        ".SH SYNOPSIS\n.B vigil\\-bench\nCOMMAND [\\fIflags\\fR]\n"
        ".SH DESCRIPTION\nA fixed number of calls is always in flight: \\-\\-connections times "
        "\\-\\-pipeline. Only answered calls are timed, and any failed call fails the run. "
        "\\-\\-help after a command shows its flags with their defaults.\n.SH COMMANDS\n",
        VIGIL_DATE, VIGIL_VERSION);
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        fprintf(to, ".TP\n.B ");
        bench_write_roff(commands[i].name, to);
        fputc('\n', to);
        bench_write_roff(commands[i].help, to);
        fputc('\n', to);
    }
    bench_options_write_man(to);
    fprintf(to, ".SH EXIT STATUS\n"
                ".TP\n0\nAll calls succeeded.\n"
                ".TP\n1\nA call failed, or the load could not run; the last line says why.\n"
                ".TP\n2\nThe command or a flag is unknown, or a value is invalid.\n"
                ".SH EXAMPLES\n.nf\n"
                "vigil\\-bench put \\-\\-connections 100 \\-\\-duration 10s\n"
                "vigil\\-bench watch \\-\\-watchers 100 \\-\\-await\\-events \\-\\-json\n.fi\n"
                ".SH SEE ALSO\nvigil(1), vigil\\-serve(8)\n");
}

/* `vigil-bench __complete WORD… CURRENT`, for the completion scripts, which are those of vigil:
 * src/cmd/complete/complete.h describes the output. */
static void write_candidates(int count, char **words, FILE *to)
{
    if (count > 1) {
        bench_options_complete(words[count - 2], words[count - 1], to);
        return;
    }
    for (size_t i = 0; i < COUNT_OF(commands); i++)
        if (strncmp(commands[i].name, words[0], strlen(words[0])) == 0)
            fprintf(to, "%s\t%s\n", commands[i].name, commands[i].help);
    fprintf(to, ":\n");
}

/* What is not a load: the help, the manual page, the version, completion. Returns the exit status.
 */
static int run_other(int argc, char **argv)
{
    const char *name = argc >= 2 ? argv[1] : "";
    if (strcmp(name, "--help") == 0 || strcmp(name, "help") == 0)
        write_usage(stdout);
    else if (strcmp(name, "man") == 0)
        write_man(stdout);
    else if (strcmp(name, "version") == 0 || strcmp(name, "--version") == 0)
        printf("vigil-bench %s\n", VIGIL_VERSION);
    else if (strcmp(name, "__complete") == 0 && argc >= 3)
        write_candidates(argc - 2, argv + 2, stdout);
    else {
        write_usage(stderr);
        return EXIT_CODE_USAGE;
    }
    return EXIT_CODE_OK;
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
        .watch_keys = BENCH_WATCH_PREFIX,
        .behind = "",
        .object = "",
        .path = "",
        .total = command->run == bench_catchup_run || command->run == bench_lease_run ? 100000 : 0,
        .duration_ns =
            command->run == bench_kube_scale_run ? UINT64_C(60000000000) : UINT64_C(5000000000),
        .warmup_ns = UINT64_C(1000000000),
        .churn = 300,
        .services = 100,
        .service_interval_ns = UINT64_C(10000000000),
        .start_rate = 200,
        .nodes_per_connection = 1,
        .series = "",
    };
}

static enum status set_up(struct bench_context *context)
{
    const struct bench_options *options = &context->options;
    struct error *error = &context->error;
    size_t prefix_len = strlen(options->prefix);
    if (prefix_len == 0 || prefix_len > BENCH_PREFIX_MAX)
        return error_set(error, ST_INVALID, "--prefix must have 1 to %d bytes", BENCH_PREFIX_MAX);
    context->order = (enum bench_order)options->keys;
    context->watch_keys = (enum bench_watch_keys)options->watch_keys;
    context->target.processes = (struct bench_processes){.server = (pid_t)options->server_pid,
                                                         .store = (pid_t)options->store_pid};
    if (context->own_clients)
        return ST_OK;
    if (options->threads > options->connections)
        return error_set(error, ST_INVALID, "--threads: each needs a connection of its own");
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
    fprintf(stderr, "vigil-bench %s: %s\n", command->name, text);
    return EXIT_CODE_FAILED;
}

int main(int argc, char **argv)
{
    const struct command *command = argc >= 2 ? find_command(argv[1]) : NULL;
    if (!command)
        return run_other(argc, argv);
    struct bench_context context = {.options = defaults_of(command),
                                    .own_clients = command->run == bench_kube_scale_run};
    enum status status = bench_options_read(argc - 2, argv + 2, &context.options, &context.error);
    if (status == ST_OK && context.options.help) {
        bench_options_print(&context.options);
        return EXIT_CODE_OK;
    }
    if (status == ST_OK)
        status = set_up(&context);
    if (status != ST_OK) {
        fprintf(stderr, "vigil-bench %s: %s\n", command->name, context.error.text);
        return EXIT_CODE_USAGE;
    }
    raise_file_limit();
    int exit_code = run(command, &context);
    bench_report_fini(&context.report);
    bench_tls_free(context.target.address.tls);
    return exit_code;
}
