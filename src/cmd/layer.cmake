# The corpus of the configuration file's fuzzer, as an ordinary test.
add_executable(cmd_config_file_corpus ${CMAKE_SOURCE_DIR}/fuzz/fuzz_cmd_config_file.c ${CMAKE_SOURCE_DIR}/fuzz/run_corpus.c)
target_link_libraries(cmd_config_file_corpus PRIVATE vigil_cmd)
set_target_properties(cmd_config_file_corpus PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)
add_test(NAME cmd/config_file_corpus COMMAND cmd_config_file_corpus ${CMAKE_SOURCE_DIR}/fuzz/corpus/cmd_config_file)
set_property(GLOBAL APPEND PROPERTY vigil_tests_of_cmd cmd_config_file_corpus)
