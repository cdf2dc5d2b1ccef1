/*
 * Configuration that is reloaded: prints the values of a ConfigMap, and
 * again whenever it changes. It keeps the last values while the server
 * cannot be reached.
 *
 *     ./kube_reload NAMESPACE NAME
 */
#include <stdio.h>
#include <vigil/kube.h>

static void show(const vigil_kube_object *object)
{
    vigil_bytes data, key, value;
    vigil_json_iterator iterator;
    char name[256], text[4096];
    if (!vigil_json_find(vigil_kube_object_json(object), "data", &data))
        return;
    iterator = vigil_json_iterate(data);
    while (vigil_json_next(&iterator, &key, &value))
        if (vigil_json_text(key, name, sizeof(name), NULL) &&
            vigil_json_text(value, text, sizeof(text), NULL))
            printf("%s = %s\n", name, text);
}

int main(int argc, char **argv)
{
    vigil_kube *kube;
    vigil_kube_informer *informer;
    vigil_kube_handler *handler;
    vigil_kube_informer_options options;
    vigil_kube_handler_options handler_options;
    vigil_kube_change change;
    vigil_selector *one = vigil_field_selector_new();
    vigil_error error;

    if (vigil_kube_new(NULL, &kube, &error) != VIGIL_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    vigil_selector_equals(one, "metadata.name",
                          argc > 2 ? argv[2] : "app");
    vigil_kube_informer_options_init(&options);
    options.target.version = "v1";
    options.target.resource = "configmaps";
    options.target.name_space = argc > 1 ? argv[1] : "default";
    options.field_selector = vigil_selector_text(one);
    vigil_kube_handler_options_init(&handler_options);
    handler_options.place = VIGIL_KUBE_HANDLER_TAKE;
    if (!options.field_selector ||
        vigil_kube_informer_new(kube, &options, &informer) !=
            VIGIL_OK ||
        vigil_kube_informer_add_handler(informer, &handler_options,
                                        &handler) != VIGIL_OK ||
        vigil_kube_informer_start(informer) != VIGIL_OK) {
        fprintf(stderr, "cannot follow the ConfigMap\n");
        return 1;
    }
    vigil_selector_free(one);
    while (vigil_kube_handler_take(handler, -1, &change) == VIGIL_OK) {
        if (change.kind == VIGIL_KUBE_CHANGE_DELETED)
            printf("it is gone\n");
        else
            show(change.object);
        fflush(stdout);
    }
    vigil_kube_handler_free(handler);
    vigil_kube_informer_free(informer);
    vigil_kube_free(kube);
    return 0;
}
