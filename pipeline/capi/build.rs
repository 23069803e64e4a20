//! Gives the shared library its name: without one, a program linked with the file by its path looks for that path when it
//! starts. Packages give it a version too.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=LOWLAT_SONAME");
    let name = std::env::var("LOWLAT_SONAME").unwrap_or_else(|_| "liblowlat_capi.so".to_owned());
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{name}");
}
