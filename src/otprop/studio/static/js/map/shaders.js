/** The programs that draw the points of the map. */

export const FADED = 1, SELECTED = 2; // bits of a row's flags
export const PASS = { faded: 0, plain: 1, labelled: 2 };

export const VERTEX = `#version 300 es
precision highp float;
in vec2 a_position;
in uint a_label;
in uint a_confidence;
in uint a_source;
in uint a_round;
in uint a_novelty;
in uint a_flags;
uniform vec2 u_middle;
uniform vec2 u_scale;
uniform float u_radius;     // of a point, in pixels of the device
uniform float u_ring;       // width of the ring of labelled rows
uniform int u_pass;
uniform int u_coloring;     // 0 label, 1 confidence, 2 source, 3 novelty
uniform uint u_round;       // rows labelled later are shown without label
uniform int u_isolated;     // class, -1 for all
uniform uint u_none;
uniform sampler2D u_classes;
uniform vec3 u_ramp[5];
uniform vec3 u_sources[5];
uniform vec3 u_faint;
uniform vec3 u_accent;
uniform vec3 u_ink;
out vec4 v_color;
out vec3 v_ringColor;
flat out float v_outer;
flat out float v_inner;
flat out int v_shape;

void main() {
  bool labelled = a_label != u_none && a_round <= u_round;
  bool person = a_source == 1u || a_source == 2u;
  bool faded = (a_flags & 1u) != 0u || (u_isolated >= 0 && (!labelled || int(a_label) != u_isolated));
  bool selected = (a_flags & 2u) != 0u;
  int pass = faded ? 0 : (person || selected) ? 2 : 1;
  v_shape = 0;
  v_inner = u_radius;
  v_outer = u_radius;
  v_ringColor = u_ink;
  vec4 texel = texelFetch(u_classes, ivec2(int(a_label & 255u), int(a_label >> 8u)), 0);
  vec3 color = u_sources[0];
  if (u_coloring == 2) color = labelled || a_source == 4u ? u_sources[min(a_source, 4u)] : u_sources[0];
  else if (u_coloring == 3 || (labelled && u_coloring == 1)) {
    float at = (u_coloring == 3 ? 1.0 - float(a_novelty) / 255.0 : float(a_confidence) / 255.0) * 4.0;
    int low = min(int(at), 3);
    color = mix(u_ramp[low], u_ramp[low + 1], at - float(low));
  } else if (labelled) {
    color = texel.rgb;
  }
  bool small = u_radius < 2.0; // too small for a shape: a square, which costs least
  if (labelled && u_coloring == 0 && !small) v_shape = int(texel.a * 255.0 + 0.5);
  float alpha = labelled || u_coloring == 3 ? 1.0 : 0.7;
  if (faded) {
    color = u_faint;
    alpha = 0.5;
    v_shape = 0;
    v_inner *= 0.8;
    v_outer = v_inner;
  } else if (selected && small && !person) {
    color = u_accent;
    alpha = 1.0;
  } else if (selected) {
    v_ringColor = u_accent;
    v_outer = v_inner + u_ring;
  } else if (person) {
    v_inner = max(u_radius, 2.5);
    v_outer = v_inner + u_ring;
    v_ringColor = a_source == 1u ? u_ink : u_accent;
  }
  if (v_shape != 0) v_inner *= 1.05;
  v_color = vec4(color * alpha, alpha);
  gl_PointSize = 2.0 * (v_outer * (v_shape == 0 ? 1.0 : 1.35) + 1.0);
  if (small && v_outer <= v_inner) {
    v_shape = -1;
    gl_PointSize = max(2.0 * v_inner, 1.5);
  }
  gl_Position = pass == u_pass ? vec4((a_position - u_middle) * u_scale, 0.0, 1.0) : vec4(2.0, 2.0, 2.0, 1.0);
}`;

export const FRAGMENT = `#version 300 es
precision highp float;
in vec4 v_color;
in vec3 v_ringColor;
flat in float v_outer;
flat in float v_inner;
flat in int v_shape;
out vec4 color;

// distance to the edge of a shape of radius r, negative inside
float edge(vec2 p, float r) {
  vec2 q = abs(p);
  if (v_shape == 0) return length(p) - r;
  if (v_shape == 1) return max(q.x, q.y) - 0.9 * r;
  if (v_shape == 3) return (q.x + q.y) * 0.7071 - 0.92 * r;
  if (v_shape == 5) {
    vec2 t = abs(vec2(p.x + p.y, p.x - p.y)) * 0.7071;
    return max(min(t.x, t.y) - 0.42 * r, max(t.x, t.y) - 1.3 * r);
  }
  float y = v_shape == 2 ? p.y : -p.y;
  return max(y - 0.85 * r, q.x * 0.88 - y * 0.475 - 0.6 * r);
}

void main() {
  if (v_shape < 0) {
    color = v_color;
    return;
  }
  float half_size = v_outer * (v_shape == 0 ? 1.0 : 1.35) + 1.0;
  vec2 p = (gl_PointCoord * 2.0 - 1.0) * half_size;
  float inner = clamp(0.5 - edge(p, v_inner), 0.0, 1.0);
  if (v_outer <= v_inner) {
    if (inner <= 0.0) discard;
    color = v_color * inner;
    return;
  }
  float outer = clamp(0.5 - (edge(p, v_inner) - (v_outer - v_inner)), 0.0, 1.0);
  if (outer <= 0.0) discard;
  color = mix(vec4(v_ringColor, 1.0) * outer, vec4(v_color.rgb / max(v_color.a, 0.01), 1.0), inner);
}`;
