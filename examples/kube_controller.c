/*
 * A controller for a custom resource. For every Website it keeps a
 * ConfigMap of the same name with the Website's text, and writes into
 * the status which generation of the Website that is. A finalizer lets
 * it remove the ConfigMap before the Website is gone.
 *
 *     kubectl apply -f kube_controller.json    the custom resource
 *     ./kube_controller
 *
 * It uses the server of $KUBECONFIG, as kubectl does.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <vigil/kube.h>

#define FINALIZER "example.com/website"

static vigil_kube *kube;
static vigil_kube_informer *websites;

/* Runs and frees a call. Returns 0 if it has succeeded. A conflict, or
 * an object that is gone, means that we have not seen the latest
 * change. */
static int run(vigil_kube_call *call)
{
    int code = vigil_kube_call_run(call);
    int status = vigil_kube_call_status(call)->code;
    if (code != VIGIL_OK && status != 404 && status != 409)
        fprintf(stderr, "%s\n", vigil_kube_call_error(call)->text);
    vigil_kube_call_free(call);
    return status == 404 ? 404 : code;
}

static int patch(vigil_kube_target target, vigil_bytes body)
{
    if (body.size == 0)
        return 0; /* there is nothing to change */
    return run(vigil_kube_patch(kube, &target, VIGIL_KUBE_PATCH_MERGE,
                                body, NULL));
}

/* The ConfigMap of a Website that is being deleted goes first. */
static int finalize(vigil_kube_object *website,
                    vigil_kube_target target)
{
    vigil_kube_target copy = {.version = "v1",
                              .resource = "configmaps",
                              .name_space = target.name_space,
                              .name = target.name};
    vigil_bytes body;
    int failed = run(vigil_kube_delete(kube, &copy, NULL));
    if (failed ||
        vigil_kube_remove_finalizer(website, FINALIZER, &body))
        return -1;
    failed = patch(target, body);
    vigil_json_free(body);
    return failed;
}

static int add_finalizer(vigil_kube_object *website,
                         vigil_kube_target target)
{
    vigil_bytes body;
    int failed;
    if (vigil_kube_add_finalizer(website, FINALIZER, &body) != VIGIL_OK)
        return -1;
    failed = patch(target, body);
    vigil_json_free(body);
    return failed;
}

/* Server-side apply: creates the ConfigMap, or corrects it. */
static int apply_copy(vigil_kube_object *website,
                      vigil_kube_target target, vigil_bytes text)
{
    vigil_kube_target copy = {.version = "v1",
                              .resource = "configmaps",
                              .name_space = target.name_space,
                              .name = target.name};
    size_t size = text.size + 2048;
    char *body = malloc(size);
    vigil_bytes owner;
    int failed = -1;
    if (body && vigil_kube_owner_reference(website, "example.com/v1",
                                           "Website", 1, &owner) == 0) {
        snprintf(body, size,
                 "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
                 "\"metadata\":{\"name\":\"%s\","
                 "\"ownerReferences\":[%.*s]},"
                 "\"data\":{\"text\":%.*s}}",
                 target.name, VIGIL_ARGS(owner), VIGIL_ARGS(text));
        vigil_json_free(owner);
        failed = run(vigil_kube_apply(kube, &copy, vigil_text(body),
                                      "website-controller", 1));
    }
    free(body);
    return failed;
}

/* Which generation of the Website has been dealt with. */
static int set_status(vigil_kube_object *website,
                      vigil_kube_target target)
{
    vigil_bytes json = vigil_kube_object_json(website), value;
    int64_t generation = 0, known = -1;
    char body[64];
    if (vigil_json_find(json, "metadata.generation", &value))
        vigil_json_integer(value, &generation);
    if (vigil_json_find(json, "status.observedGeneration", &value))
        vigil_json_integer(value, &known);
    if (known == generation)
        return 0;
    snprintf(body, sizeof(body),
             "{\"status\":{\"observedGeneration\":%lld}}",
             (long long)generation);
    target.subresource = "status";
    return patch(target, vigil_text(body));
}

/* Makes the world as this Website wants it. */
static int reconcile(vigil_kube_object *website)
{
    char space[64], name[256];
    vigil_bytes text = vigil_text("\"\"");
    vigil_kube_target target = {.group = "example.com",
                                .version = "v1",
                                .resource = "websites",
                                .name_space = space,
                                .name = name};
    snprintf(space, sizeof(space), "%.*s",
             VIGIL_ARGS(vigil_kube_object_namespace(website)));
    snprintf(name, sizeof(name), "%.*s",
             VIGIL_ARGS(vigil_kube_object_name(website)));
    if (vigil_kube_object_is_deleting(website))
        return finalize(website, target);
    vigil_json_find(vigil_kube_object_json(website), "spec.text",
                    &text);
    return add_finalizer(website, target) ||
           apply_copy(website, target, text) ||
           set_status(website, target);
}

static void on_website(vigil_kube_handler *handler,
                       const vigil_kube_change *change, void *queue)
{
    (void)handler;
    vigil_work_queue_add(queue, vigil_kube_object_key(change->object));
}

/* When a ConfigMap was changed, its Website is looked at. */
static void on_copy(vigil_kube_handler *handler,
                    const vigil_kube_change *change, void *queue)
{
    vigil_kube_owner owner;
    (void)handler;
    if (vigil_kube_object_controller(change->object, &owner))
        vigil_work_queue_add(queue,
                             vigil_kube_object_key(change->object));
}

static vigil_kube_informer *follow(vigil_kube_target target,
                                   vigil_kube_handler_fn fn,
                                   vigil_work_queue *queue)
{
    vigil_kube_informer_options options;
    vigil_kube_handler_options handler_options;
    vigil_kube_informer *informer;
    vigil_kube_handler *handler;
    vigil_kube_informer_options_init(&options);
    options.target = target;
    vigil_kube_handler_options_init(&handler_options);
    handler_options.place = VIGIL_KUBE_HANDLER_CALLBACK;
    handler_options.fn = fn;
    handler_options.user = queue;
    if (vigil_kube_informer_new(kube, &options, &informer) ||
        vigil_kube_informer_add_handler(informer, &handler_options,
                                        &handler) ||
        vigil_kube_informer_start(informer) ||
        vigil_kube_informer_wait_synced(informer, -1)) {
        fprintf(stderr, "cannot follow %s\n", target.resource);
        exit(1);
    }
    return informer;
}

static void work(vigil_work_queue *queue)
{
    vigil_bytes key;
    while (vigil_work_queue_take(queue, -1, &key) == VIGIL_OK) {
        vigil_kube_object *website =
            vigil_kube_informer_get(websites, key);
        if (!website || reconcile(website) == 0)
            vigil_work_queue_forget(queue, key);
        else
            vigil_work_queue_add_later(queue, key);
        vigil_kube_object_unref(website);
        vigil_work_queue_done(queue, key);
    }
}

static void stop(int number)
{
    (void)number;
    _Exit(0); /* nothing here needs to be saved */
}

int main(void)
{
    vigil_kube_target websites_target = {.group = "example.com",
                                         .version = "v1",
                                         .resource = "websites"};
    vigil_kube_target copies_target = {.version = "v1",
                                       .resource = "configmaps"};
    vigil_kube_options options;
    vigil_work_queue *queue;
    vigil_error error;
    vigil_kube_options_init(&options);
    options.calls_per_second = 100;
    signal(SIGTERM, stop);
    if (vigil_kube_new(&options, &kube, &error) != VIGIL_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    if (vigil_work_queue_new(NULL, &queue) != VIGIL_OK)
        return 1;
    websites = follow(websites_target, on_website, queue);
    follow(copies_target, on_copy, queue);
    printf("ready\n");
    fflush(stdout);
    work(queue);
    return 0;
}
