// For the tests that compare a driver's declarations with the vendor's header.
//
// SameShape<F, G>: two functions that a call cannot tell apart. Pointers are like any pointer, and
// like a 64-bit number where the vendor and Keel disagree about what an address is; enumerations
// are like numbers of their size.
#pragma once

#include <cstddef>
#include <type_traits>

namespace keel::vendor {

template <class A, class B>
constexpr bool PassedAlike() {
  if constexpr (std::is_void_v<A> || std::is_void_v<B>) {
    return std::is_void_v<A> && std::is_void_v<B>;
  } else {
    constexpr bool kFloating = std::is_floating_point_v<A> || std::is_floating_point_v<B>;
    constexpr bool kScalar = std::is_scalar_v<A> && std::is_scalar_v<B>;
    // NOLINTNEXTLINE(bugprone-sizeof-expression): of pointers too
    return kScalar && sizeof(A) == sizeof(B) && (!kFloating || std::is_same_v<A, B>);
  }
}

template <class F, class G>
struct Shape : std::false_type {};
template <class R, class... A, class S, class... B>
  requires(sizeof...(A) == sizeof...(B))
struct Shape<R(A...), S(B...)>
    : std::bool_constant<PassedAlike<R, S>() && (PassedAlike<A, B>() && ...)> {};

template <class F>
using FunctionOf = std::remove_pointer_t<std::remove_cvref_t<F>>;

template <class F, class G>
inline constexpr bool SameShape = Shape<FunctionOf<F>, FunctionOf<G>>::value;

}  // namespace keel::vendor
