/* A configuration file, read twice as a start does: settings, or an error that names a line. */
#include "cost.h"

#include "cmd/serve/config/config_file.h"
#include "cmd/serve/options/options.h"

/* Every setting is searched in the table of flags, in both passes. */
FUZZ_INPUT(.steps_per_byte = 5000)
{
    struct options options;
    struct serve_options values;
    struct config_file *file;
    struct error error;
    struct config_file_listener nobody = {0};
    if (config_file_of("fuzz", slice_of(data, size), &file, &error) != ST_OK)
        return 0;
    options_init(&options, &serve_table, &values);
    enum status first = config_file_apply(file, &options, nobody, &error);
    assert(first == ST_OK || error.text[0]);
    enum status second = config_file_apply(file, &options, nobody, &error);
    assert(first != ST_OK || second == ST_OK || strstr(error.text, "too many values"));
    config_file_close(file);
    return 0;
}
