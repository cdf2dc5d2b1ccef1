# find_package(libvigil) defines the targets libvigil::libvigil, the shared library, and
# libvigil::static; of the component kube, the library for Kubernetes, libvigil::kube and
# libvigil::kube_static; and of the component embed, the store in the program, libvigil::embed and
# libvigil::embed_static, which are used without the others. Installed in PREFIX/@lib@/cmake/libvigil;
# the paths are relative to it.
get_filename_component(_libvigil_lib "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
get_filename_component(_libvigil_include "${_libvigil_lib}/@up@/include" ABSOLUTE)

if(NOT TARGET libvigil::libvigil)
    add_library(libvigil::libvigil SHARED IMPORTED)
    set_target_properties(libvigil::libvigil PROPERTIES
        IMPORTED_LOCATION "${_libvigil_lib}/libvigil.so.@version@"
        IMPORTED_SONAME libvigil.so.1
        INTERFACE_INCLUDE_DIRECTORIES "${_libvigil_include}")
    add_library(libvigil::static STATIC IMPORTED)
    set_target_properties(libvigil::static PROPERTIES
        IMPORTED_LOCATION "${_libvigil_lib}/libvigil.a"
        INTERFACE_INCLUDE_DIRECTORIES "${_libvigil_include}"
        INTERFACE_LINK_LIBRARIES "ssl;crypto;resolv;-pthread")
    add_library(libvigil::kube SHARED IMPORTED)
    set_target_properties(libvigil::kube PROPERTIES
        IMPORTED_LOCATION "${_libvigil_lib}/libvigil-kube.so.@version@"
        IMPORTED_SONAME libvigil-kube.so.1
        INTERFACE_LINK_LIBRARIES libvigil::libvigil)
    add_library(libvigil::kube_static STATIC IMPORTED)
    set_target_properties(libvigil::kube_static PROPERTIES
        IMPORTED_LOCATION "${_libvigil_lib}/libvigil-kube.a"
        INTERFACE_LINK_LIBRARIES "libvigil::static;yaml")
    add_library(libvigil::embed SHARED IMPORTED)
    set_target_properties(libvigil::embed PROPERTIES
        IMPORTED_LOCATION "${_libvigil_lib}/libvigil-embed.so.@version@"
        IMPORTED_SONAME libvigil-embed.so.1
        INTERFACE_INCLUDE_DIRECTORIES "${_libvigil_include}")
    add_library(libvigil::embed_static STATIC IMPORTED)
    set_target_properties(libvigil::embed_static PROPERTIES
        IMPORTED_LOCATION "${_libvigil_lib}/libvigil-embed.a"
        INTERFACE_INCLUDE_DIRECTORIES "${_libvigil_include}"
        INTERFACE_LINK_LIBRARIES "lmdb;ssl;crypto;crypt;yaml;z;resolv;pthread")
endif()

set(libvigil_kube_FOUND TRUE)
set(libvigil_embed_FOUND TRUE)
foreach(_libvigil_component ${libvigil_FIND_COMPONENTS})
    if(libvigil_FIND_REQUIRED_${_libvigil_component} AND NOT libvigil_${_libvigil_component}_FOUND)
        set(libvigil_FOUND FALSE)
        set(libvigil_NOT_FOUND_MESSAGE "libvigil has no component ${_libvigil_component}")
    endif()
endforeach()
unset(_libvigil_component)
unset(_libvigil_include)
unset(_libvigil_lib)
