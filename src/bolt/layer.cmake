# What the fuzzer has found interesting, as an ordinary test.
add_executable(bolt_reader_corpus ${CMAKE_SOURCE_DIR}/fuzz/fuzz_bolt_reader.c ${CMAKE_SOURCE_DIR}/fuzz/run_corpus.c)
target_link_libraries(bolt_reader_corpus PRIVATE vigil_bolt)
set_target_properties(bolt_reader_corpus PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)
add_test(NAME bolt/reader/corpus COMMAND bolt_reader_corpus ${CMAKE_SOURCE_DIR}/fuzz/corpus/bolt_reader)
set_property(GLOBAL APPEND PROPERTY vigil_tests_of_bolt bolt_reader_corpus)
