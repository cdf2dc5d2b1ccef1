# vigil_layer(NAME IN directory USES lower... TEST_USES doubles... LIBS system... TEST_LIBS system...)
#
# Builds src/NAME into the static library vigil_NAME, and every x_test.c under it into a test
# program of its own. A test links its layer's row and nothing else, so an upward call does not link.
# TEST_USES are layers for its tests, which may use it themselves.
# A layer that is not part of the product is IN another directory, from which its includes are written.
function(vigil_layer name)
    cmake_parse_arguments(ARG "" "IN" "USES;TEST_USES;LIBS;TEST_LIBS" ${ARGN})
    set(root ${CMAKE_SOURCE_DIR}/src)
    if(ARG_IN)
        set(root ${CMAKE_SOURCE_DIR}/${ARG_IN})
    endif()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${root}/${name}/*.c)
    set(tests ${sources})
    list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.c$")
    list(FILTER tests INCLUDE REGEX "_test\\.c$")

    if(NOT sources)
        add_library(vigil_${name} INTERFACE)
        set(visibility INTERFACE)
    else()
        add_library(vigil_${name} STATIC ${sources})
        set(visibility PUBLIC)
    endif()
    foreach(library ${ARG_LIBS} ${ARG_TEST_LIBS})
        if(TARGET msan_${library}) # tests/msan
            list(TRANSFORM ARG_LIBS REPLACE "^${library}$" msan_${library})
            list(TRANSFORM ARG_TEST_LIBS REPLACE "^${library}$" msan_${library})
        endif()
    endforeach()
    list(TRANSFORM ARG_TEST_USES PREPEND vigil_)
    list(APPEND ARG_TEST_LIBS ${ARG_TEST_USES})
    set_property(GLOBAL PROPERTY vigil_test_libs_of_${name} ${ARG_TEST_LIBS})
    list(TRANSFORM ARG_USES PREPEND vigil_ OUTPUT_VARIABLE lower)
    target_link_libraries(vigil_${name} ${visibility} ${lower} ${ARG_LIBS})
    if(ARG_IN)
        target_include_directories(vigil_${name} ${visibility} ${root})
    endif()
    if(EXISTS ${root}/${name}/layer.cmake)
        include(${root}/${name}/layer.cmake)
    endif()

    foreach(test ${tests})
        file(RELATIVE_PATH relative ${root} ${test})
        string(REGEX REPLACE "\\.c$" "" relative ${relative})
        string(REPLACE "/" "_" program ${relative})
        add_executable(${program} ${test})
        target_link_libraries(${program} PRIVATE vigil_${name} $<IF:$<TARGET_EXISTS:msan_cmocka>,msan_cmocka,cmocka>
                              ${ARG_TEST_LIBS})
        target_compile_definitions(${program} PRIVATE VIGIL_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
        # To optimize a test takes several times as long as to compile it, and is of no use.
        if(VIGIL_SANITIZE)
            target_compile_options(${program} PRIVATE -Og)
        endif()
        set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)
        add_test(NAME ${relative} COMMAND ${program})
        set_tests_properties(${relative} PROPERTIES TIMEOUT 300)
        set_property(GLOBAL APPEND PROPERTY vigil_tests_of_${name} ${program})
    endforeach()
    get_property(programs GLOBAL PROPERTY vigil_tests_of_${name})
    # `ninja layer-store` builds one layer with its tests.
    add_custom_target(layer-${name} DEPENDS vigil_${name} ${programs})
endfunction()

# vigil_failing_memory(PROGRAM...): tests in which each allocation can fail (src/base/failing_memory_test.h). For the
# layer.cmake of a layer, which is included before its tests are made.
function(vigil_failing_memory)
    foreach(program ${ARGN})
        cmake_language(EVAL CODE "cmake_language(DEFER CALL target_link_options ${program} PRIVATE
            -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=strdup)")
    endforeach()
endfunction()

# vigil_tool(PROGRAM LAYER SOURCE...): a program beside the tests, over one layer.
function(vigil_tool program layer)
    add_executable(${program} ${ARGN})
    target_link_libraries(${program} PRIVATE vigil_${layer})
    set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)
endfunction()

# vigil_corpus(LAYER NAME): what the fuzzer fuzz_LAYER_NAME has found interesting, as an ordinary test.
function(vigil_corpus layer name)
    set(program ${layer}_${name}_corpus)
    vigil_tool(${program} ${layer} ${CMAKE_SOURCE_DIR}/fuzz/fuzz_${layer}_${name}.c ${CMAKE_SOURCE_DIR}/fuzz/cost.c
               ${CMAKE_SOURCE_DIR}/fuzz/run_corpus.c)
    add_test(NAME ${layer}/${name}/corpus COMMAND ${program} ${CMAKE_SOURCE_DIR}/fuzz/corpus/${layer}_${name})
    get_property(libs GLOBAL PROPERTY vigil_test_libs_of_${layer})
    target_link_libraries(${program} PRIVATE ${libs})
    set_property(GLOBAL APPEND PROPERTY vigil_tests_of_${layer} ${program})
    set_property(GLOBAL APPEND PROPERTY vigil_corpora ${program})
endfunction()

# vigil_bench(LAYER): bench/layers/LAYER_bench.c. Built with the tests, so that it keeps compiling.
function(vigil_bench layer)
    vigil_tool(${layer}_bench ${layer} ${CMAKE_SOURCE_DIR}/bench/layers/${layer}_bench.c)
endfunction()

# vigil_program(NAME LAYER MAIN): a program over one layer that is installed, left in the build directory.
function(vigil_program name layer main)
    add_executable(${name} ${main})
    target_link_libraries(${name} PRIVATE vigil_${layer})
    add_dependencies(installed ${name})
endfunction()

# vigil_fuzzers(): every fuzz/fuzz_LAYER_x.c is a harness over that layer, linked with libFuzzer.
# `ninja fuzzers` builds them all.
function(vigil_fuzzers)
    file(GLOB harnesses CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/fuzz/fuzz_*.c)
    foreach(harness ${harnesses})
        get_filename_component(program ${harness} NAME_WE)
        string(REGEX REPLACE "^fuzz_([a-z]+).*" "\\1" layer ${program})
        add_executable(${program} ${harness} ${CMAKE_SOURCE_DIR}/fuzz/cost.c)
        target_compile_definitions(${program} PRIVATE VIGIL_LIBFUZZER)
        target_compile_options(${program} PRIVATE -fsanitize=fuzzer)
        target_link_options(${program} PRIVATE -fsanitize=fuzzer -Wl,--wrap=__sanitizer_cov_trace_pc)
        get_property(libs GLOBAL PROPERTY vigil_test_libs_of_${layer})
        target_link_libraries(${program} PRIVATE vigil_${layer} ${libs})
        set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
        list(APPEND programs ${program})
    endforeach()
    add_custom_target(fuzzers DEPENDS ${programs})
endfunction()
