// Gives the headers that tests share a target to be compiled in (cmake/TriptychTargets.cmake).
// SPDX-License-Identifier: Apache-2.0
