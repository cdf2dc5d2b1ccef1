/* libyaml, as the memory sanitizer has to see it: the parser and its events are defined. */
#include <sanitizer/msan_interface.h>
#include <yaml.h>

/* Names that the linker makes from libyaml's. */
#define REAL(name) __real_##name
#define WRAP(name) __wrap_##name

int REAL(yaml_parser_initialize)(yaml_parser_t *parser);
int WRAP(yaml_parser_initialize)(yaml_parser_t *parser);
int REAL(yaml_parser_parse)(yaml_parser_t *parser, yaml_event_t *event);
int WRAP(yaml_parser_parse)(yaml_parser_t *parser, yaml_event_t *event);

static void text_is_defined(const yaml_char_t *text)
{
    if (text)
        __msan_unpoison_string((const char *)text);
}

static void event_is_defined(const yaml_event_t *event)
{
    __msan_unpoison(event, sizeof(*event));
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        text_is_defined(event->data.scalar.anchor);
        text_is_defined(event->data.scalar.tag);
        __msan_unpoison(event->data.scalar.value, event->data.scalar.length + 1);
        break;
    case YAML_ALIAS_EVENT:
        text_is_defined(event->data.alias.anchor);
        break;
    case YAML_SEQUENCE_START_EVENT:
        text_is_defined(event->data.sequence_start.anchor);
        text_is_defined(event->data.sequence_start.tag);
        break;
    case YAML_MAPPING_START_EVENT:
        text_is_defined(event->data.mapping_start.anchor);
        text_is_defined(event->data.mapping_start.tag);
        break;
    default:
        break;
    }
}

int WRAP(yaml_parser_initialize)(yaml_parser_t *parser)
{
    int ok = REAL(yaml_parser_initialize)(parser);
    __msan_unpoison(parser, sizeof(*parser));
    return ok;
}

int WRAP(yaml_parser_parse)(yaml_parser_t *parser, yaml_event_t *event)
{
    __msan_scoped_disable_interceptor_checks(); /* checks of what it passes to the C library */
    int ok = REAL(yaml_parser_parse)(parser, event);
    __msan_scoped_enable_interceptor_checks();
    __msan_unpoison(parser, sizeof(*parser));
    event_is_defined(event);
    return ok;
}
